"""What a converter did to tensors that belong together, and did to one of them alone: rows of a matrix and its bias, of
queries and keys; and layers that all stand one place off.

Another order of rows is sound where all that meets them is in it as well: rotary positions as pairs want other rows
than as halves, of queries and keys alike, and of their biases. Whatever the order is for, a bias in the old one adds
its numbers to the wrong units.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_weights.conversions import FEWEST, Member
from traindx_tools.on_weights.origins import CLOSE, Held, Values

_NUMBER = re.compile(r"\d+")
_WEIGHT = re.compile(r"(?:weight|kernel|w)$")
_QUERY = re.compile(r"(?<![a-z])(w?)q(?=[_.]|$)|(?<![a-z])query(?![a-z])|(?<=[_.])q_proj")


@dataclass(frozen=True)
class Apart:
    """`kind`: bias, keys. `names`: the tensors that are in another order, `beside`: what is not, of the first of them;
    `row`: a row that moved and where it was."""

    kind: str
    names: tuple[str, ...]
    beside: str
    row: tuple[int, int]


def orders_apart(members: Sequence[Member], sources: Sequence[Held]) -> Iterator[Apart]:
    """Matrices with rows in another order whose bias, or whose keys, are not in it; one of each kind."""
    by_name = {m.held.name: m for m in members}
    held = {s.name: s for s in sources}
    found: dict[str, list[Apart]] = {}
    for member in members:
        order = _order(member)
        if order is None:
            continue
        bias = by_name.get(_WEIGHT.sub(lambda m: "b" if m[0] == "w" else "bias", member.held.name))
        if bias is not None and bias is not member and _stands(bias, order, held):
            found.setdefault("bias", []).append(_apart("bias", member, bias, order))
        keys = by_name.get(_QUERY.sub(_as_key, member.held.name, count=1))
        for one, other in ((member, keys),) if keys is not None and keys is not member else ():
            theirs = _order(other)
            same = theirs is not None and [i - min(theirs) for i in theirs] == [i - min(order) for i in order]
            if other.found and not same and other.held.shape == one.held.shape and _is_rows(other):
                found.setdefault("keys", []).append(_apart("keys", one, other, order))
    for kind, group in found.items():
        yield Apart(kind, tuple(n for a in group for n in a.names), group[0].beside, group[0].row)


def _as_key(found: re.Match[str]) -> str:
    return found[0].replace("query", "key").replace("q", "k")


def _order(member: Member) -> tuple[int, ...] | None:
    """The order of its rows, where that is all that was done to it."""
    orders = {o.order for o in member.found}
    return next(iter(orders)) if len(orders) == 1 else None


def _is_rows(member: Member) -> bool:
    """Whether it is its source, or rows of it, in some order."""
    return all(o.order is not None or "times" not in o.form for o in member.found)


def _stands(bias: Member, order: tuple[int, ...], sources: Mapping[str, Held]) -> bool:
    """Whether a bias is that of the source in the old order, and not in that of the rows."""
    values = bias.held.ways[0][1].reshape(-1)
    for source in {o.source for o in bias.found}:
        given = sources[source].ways[0][1].reshape(-1)
        if len(values) != len(order) or max(order) >= len(given):
            continue
        if _off(given[list(order)], values) <= CLOSE:
            return False
        if _off(given[sorted(order)], values) <= CLOSE:
            return True
    return False


def _off(given: Values, values: Values) -> float:
    return float(np.linalg.norm(given - values)) / max(float(np.linalg.norm(values)), 1e-30)


def _apart(kind: str, one: Member, other: Member, order: tuple[int, ...]) -> Apart:
    at = next(i for i, o in enumerate(order) if o != i + min(order))
    return Apart(kind, (one.held.name,), other.held.name, (at, order[at] - min(order)))


def layers_off(members: Sequence[Member], sources: Sequence[Held]) -> tuple[int, int, str, str] | None:
    """By how many places the layers of a file are off where both number them alike; of how many tensors, and an example
    with its source."""
    votes: Counter[tuple[int, ...]] = Counter()
    example: dict[tuple[int, ...], tuple[str, str]] = {}
    for member in members:
        theirs = {o.source for o in member.found if _NUMBER.sub("*", o.source) == _NUMBER.sub("*", member.held.name)}
        if len(theirs) == 1 and member.numbers and len(member.held.shape) > 1:
            (source,) = theirs
            off = tuple(int(a) - b for a, b in zip(_NUMBER.findall(source), member.numbers, strict=True))
            votes[off] += 1
            example.setdefault(off, (member.held.name, source))
    if not votes:
        return None
    off, count = votes.most_common(1)[0]
    own, sourced = _by_kind(m.held.name for m in members), _by_kind(s.name for s in sources)
    alike = all(own[kind] == sourced[kind] for kind in own.keys() & sourced.keys())
    moved = [n for n in off if n]
    if len(moved) != 1 or count < max(FEWEST, sum(votes.values()) / 2) or not alike:
        return None
    return moved[0], count, *example[off]


def _by_kind(names: Iterable[str]) -> dict[str, set[str]]:
    """Names by what they are without their numbers."""
    found: dict[str, set[str]] = {}
    for name in names:
        found.setdefault(_NUMBER.sub("*", name), set()).add(name)
    return found
