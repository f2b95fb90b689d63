"""Whether evaluated pairs (u, v) were trained on as (v, u), in a relation that has no direction.

A directed relation that is sometimes returned must not be taken for one without a direction: nearly each trained pair
must be there both ways, in training or evaluation, and many within the training alone. Pairs that were trained on in
the very order in which they are evaluated say nothing here: that is the affair of the rules on evaluated rows. Where
training holds both orders of each of its pairs and evaluation none of them, no pair is known in reverse alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.rows.pairs import Codes, Ints, Kept, PairGroup, codes, contained, in_sample, parts_of

FEWEST = 20
"""Pairs, evaluated and reversed."""
SHARE, TIMES = 0.1, 3.0
"""Share of the evaluated pairs, and times what chance makes of it."""
RETURNED, BOTH_WAYS = 0.3, 0.8
"""Share of the trained pairs that are trained on both ways, and that are both ways in all that was seen."""
SHARED = 0.5
"""Of the values of the side with fewer: those that the other side has too. Else they are no pair of one vocabulary."""
ALL = 0.95
"""Share from which on evaluated pairs are those of the training; of rows the rules on evaluated rows say so."""
MIXES = 4
NAMED = 4


@dataclass(frozen=True)
class Reversed:
    """Evaluated pairs whose reverse was trained on."""

    hits: int
    rows: int
    """Evaluated pairs that were not trained on in their own order."""
    chance: float
    returned: float
    """Share of the trained pairs whose reverse was trained on too."""
    both_ways: float
    """The same, in training or evaluation."""
    rate: int
    """One in so many pairs was looked at."""
    pairs: tuple[tuple[int, int], ...]
    at: tuple[int, ...]
    """Rows of the evaluated call in which these stood first."""

    @property
    def share(self) -> float:
        """Of the evaluated pairs."""
        return self.hits / self.rows


@dataclass(frozen=True, eq=False)
class _Relation:
    """Trained pairs of a relation without a direction, and the shares that `Reversed` tells."""

    pairs: Kept
    returned: float
    both_ways: float
    rate: int

    def at_rate(self, rate: int) -> _Relation:
        """The sample of it that others are of."""
        which = in_sample(self.pairs.u, self.pairs.v, rate)
        return replace(self, pairs=self.pairs.where(which), rate=rate)


def reversed_pairs(trained: Mapping[Hashable, PairGroup],
                   evaluated: Mapping[Hashable, PairGroup]) -> Iterator[tuple[Hashable, Reversed]]:
    """For each evaluated group whose pairs were trained on the other way round: the strongest sign of it."""
    relations = _relations(trained, evaluated)
    rate = max((one.rate for one in relations), default=1)
    relations = [one.at_rate(rate) for one in relations]
    asked = {key: g.kept(rate) for key, g in evaluated.items()}
    # Not all that was trained on: negatives that are drawn anew come to hold most pairs.
    known = _sorted([one.pairs.code for one in relations])
    comparisons = 3 * max(1, len(relations)) * max(1, len(asked))
    for key, kept in asked.items() if relations else ():
        parts = [new for part in parts_of(kept.proper) if (new := _new(part, known)) is not None]
        found = [_against(part, one, rate, comparisons) for one in relations for part in parts]
        best = max((f for f in found if f is not None), key=lambda f: f.hits * f.share, default=None)
        if best is not None:
            yield key, best


def _new(part: Kept, known: Codes) -> Kept | None:
    """Evaluated pairs that were not trained on in their own order; None where these are the training pairs, scored in
    other orders than they came in."""
    if not len(part):
        return None
    same = contained(part.code, known)
    either = same | contained(codes(part.v, part.u), known)
    return None if same.mean() >= SHARE and either.mean() >= ALL else part.where(~same)


def _sorted(parts: list[Codes]) -> Codes:
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.uint64)


def _relations(trained: Mapping[Hashable, PairGroup], evaluated: Mapping[Hashable, PairGroup]) -> list[_Relation]:
    groups = [(g.kept(), g.rate) for g in evaluated.values()]
    rarest, found = max((rate for _, rate in groups), default=1), []
    for g in trained.values():
        g.kept()  # what waits may make the rate a rarer one
        rate = max(g.rate, rarest)
        asked = [e.kept(rate).code for e in evaluated.values()]
        for part in parts_of(g.kept(rate).proper):
            one = _undirected(part, _sorted([part.code, *asked]), rate)
            found += [one] if one is not None else []
    return found


def _undirected(part: Kept, seen: Codes, rate: int) -> _Relation | None:
    """None where the relation has a direction, is none within one vocabulary, or is so dense that chance returns most
    pairs."""
    if len(part) < FEWEST or not _one_vocabulary(part):
        return None
    back = codes(part.v, part.u)
    returned, both = float(contained(back, part.code).mean()), float(contained(back, seen).mean())
    if returned < max(RETURNED, TIMES * _chance(part, part, rate)) or both < BOTH_WAYS:
        return None
    return _Relation(part, returned, both, rate)


def _one_vocabulary(part: Kept) -> bool:
    left, right = np.unique(part.u), np.unique(part.v)
    return len(np.intersect1d(left, right)) >= SHARED * min(len(left), len(right))


def _against(new: Kept, trained: _Relation, rate: int, comparisons: int) -> Reversed | None:
    """`new`: evaluated pairs that were not trained on in their own order."""
    if len(new) < FEWEST:
        return None
    hits = contained(codes(new.v, new.u), trained.pairs.code)
    chance = _chance(new, trained.pairs, rate)
    n, share = int(hits.sum()), float(hits.mean())
    if n < FEWEST or share < max(SHARE, TIMES * chance):
        return None
    if share_tail(n, len(new), min(1.0, 2.0 * chance)) * comparisons > LEVEL:
        return None
    first = np.flatnonzero(hits)
    first = first[np.argsort(new.row[first], kind="stable")][:NAMED]
    pairs = tuple((int(new.u[i]), int(new.v[i])) for i in first)
    return Reversed(n, len(new), chance, trained.returned, trained.both_ways, rate, pairs,
                    tuple(int(new.row[i]) for i in first))


def _chance(asked: Kept, relation: Kept, rate: int) -> float:
    """The share of pairs that are in the relation in reverse by chance, for ids as frequent as these are: partners are
    exchanged at random. Never below the density of the relation."""
    random = np.random.default_rng(0)
    met = of = 0
    for _ in range(MIXES):
        u, v = asked.u, random.permutation(asked.v)
        which = (u != v) & in_sample(u, v, rate)
        met += int(contained(codes(v[which], u[which]), relation.code).sum())
        of += int(which.sum())
    nodes = len(_values(relation.u, relation.v))
    density = rate * len(relation) / max(1, nodes * nodes)
    return min(1.0, max(met / max(1, of), density))


def _values(u: Ints, v: Ints) -> Ints:
    return np.unique(np.concatenate([u, v]))
