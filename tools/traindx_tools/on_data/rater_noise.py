"""Groups of rows (an annotator, a site, a device) whose labels are partly drawn at random.

A ridge regression on the rows of all other groups names a label for each row: over hashed words of texts, numbers and
short arrays, also columns of few whole numbers, and what pictures hold (`picture_features.py`). How often it is right
is compared with what it should be at the same sureness and the same named class in the other groups, so that a harder
mix of inputs is no noise. A group counts where it falls short by more than sampling and the spread of the other groups
explain, while a model of its own rows is worse as well: a relation of its own, such as a stricter grade, is no noise.
Labels of two classes that stand for each other are told as that, also where they do so throughout: no standard of
somebody's own turns two classes into one another.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import Cut
from traindx_tools.on_data.features import narrowed, prepared
from traindx_tools.on_data.picture_features import SIDE, described
from traindx_tools.on_data.roles import codes, is_id_name, is_identifier, is_target, is_time, keys, label_name
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, normal_tail
from traindx_tools.on_data.tasks import solved

ROWS = 40
"""Rows of a group."""
GROUPS = 4
MANY = 5
"""Groups, of fewer of which one has to stand out twice as far: three others say little of how far groups are apart."""
SKILL = 0.15
"""Of the way from guessing to perfect, in the typical group."""
SHORT = 0.08
"""Share of the rows by which a group falls short at least."""
TIMES = 2.5
"""How many times as far as any other group."""
OWN = 0.8
"""Of what models of their own rows reach in the other groups: above it the group has a relation of its own."""
AS_SURE = 0.7
"""Of the usual sureness: below it the inputs are others."""
CONFUSED = 0.6
"""Of the misses beyond those expected, the share that two classes make that stand for each other."""
BOTH_WAYS = 0.2
"""Of those, the share of the rarer direction."""
BINS = 5
KINDS = 12
MOST_ROWS, FEWEST_ROWS = 20_000, 2000
MOST_PRODUCTS = 6e9
"""Products of all models of a set: about two seconds of one core. Of wide inputs fewer rows are looked at."""
WORDS = 384
"""Places of hashed words of one text."""
MOST_WIDTH, MOST_INPUTS = 64, 640
LARGEST_SIDE = 64
"""Pixels of a side of pictures in arrays."""
_WORD = re.compile(r"[^\W_]+", re.UNICODE)


@dataclass(frozen=True, eq=False)
class Noisy:
    """Group `part`, how often the model is right there and should be, and the share drawn at random."""

    part: int
    here: float
    expected: float
    elsewhere: float
    share: float
    own: float
    others_own: float
    log_chance: float
    confused: tuple[int, int] | None = None
    """Places of two kinds that stand for each other in most of the misses."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Features and labels (places among the kinds) of the rows looked at; `chosen` of each shard."""

    x: Array
    y: Array
    kinds: int
    chosen: tuple[Array, ...]
    names: tuple[str, ...] = ()
    """Of the kinds."""


def rows_of(group: Sequence[Shard], label: str, without: frozenset[str], tries: int,
            shown: Mapping[int, tuple[Array, Array]] | None = None) -> Rows | None:
    """None where there are no inputs, or the label has one kind or many. `without`: fields that name groups.

    `shown`: by place of each shard, rows and features of the pictures that they list.
    """
    kinds = np.unique(np.concatenate([keys(s.columns[label]) for s in group]))
    if not 2 <= len(kinds) <= KINDS:
        return None
    step = max(1, math.ceil(sum(s.rows for s in group) / MOST_ROWS))
    chosen = tuple(np.arange(i % step, s.rows, step) for i, s in enumerate(group))
    if shown is not None:
        chosen = tuple(shown[i][0] for i in range(len(group)))
    names = [n for n in group[0].columns if n != label and n not in without and not is_target(n)]
    parts = [f for n in names if (f := _features(group, n, chosen)) is not None]
    if shown is not None:
        parts.append(np.concatenate([shown[i][1] for i in range(len(group))]))
    if not parts:
        return None
    x = prepared([narrowed(np.concatenate(parts, axis=1), MOST_INPUTS)])[0]
    most = max(FEWEST_ROWS, int(MOST_PRODUCTS / (x.shape[1] ** 2 * tries)))
    if len(x) > most:
        few = -(-len(x) // most)
        starts = np.cumsum([0, *map(len, chosen)])
        x = np.concatenate([x[a:b][::few] for a, b in pairwise(starts)])
        chosen = tuple(c[::few] for c in chosen)
    y = np.concatenate([codes(s.columns[label], kinds)[r] for s, r in zip(group, chosen, strict=True)])
    return Rows(x, y, len(kinds), chosen, tuple(label_name(group, label, k) for k in kinds))


def _features(group: Sequence[Shard], name: str, chosen: Sequence[Array]) -> Array | None:
    columns = [c for s in group if (c := s.columns.get(name)) is not None and c.rows == s.rows]
    if len(columns) < len(group) or is_id_name(name) or is_time(name) or any(map(is_identifier, columns)):
        return None
    if all(c.kind == "text" and len(c.texts) == c.rows for c in columns):
        return np.concatenate([words_of([c.texts[i] for i in r]) for c, r in zip(columns, chosen, strict=True)])
    if not all(c.kind == "number" and c.values.dtype.kind in "iufb" for c in columns):
        return None
    if all(_is_picture(c) for c in columns):
        return np.concatenate([described(c.values[r]) for c, r in zip(columns, chosen, strict=True)])
    flat = [np.asarray(c.values[r], np.float32).reshape(len(r), -1) for c, r in zip(columns, chosen, strict=True)]
    return np.concatenate(flat) if len({f.shape[1] for f in flat}) == 1 and flat[0].shape[1] <= MOST_WIDTH else None


def _is_picture(column: Column) -> bool:
    shape = column.row_shape
    return len(shape) in (2, 3) and min(shape[:2]) >= SIDE and max(shape[:2]) <= LARGEST_SIDE and (
        len(shape) == 2 or shape[2] <= 4)


def words_of(texts: Sequence[str]) -> Array:
    """float32 shape (texts, places): roots of the counts of hashed words."""
    out = np.zeros((len(texts), WORDS), np.float32)
    for row, text in enumerate(texts):
        for word in _WORD.findall(text.casefold()):
            out[row, zlib.crc32(word.encode("utf-8", "replace")) % WORDS] += 1.0
    return np.sqrt(out)


def noisy_group(rows: Rows, cut: Cut, comparisons: float) -> Noisy | None:
    """The one group of a cut that falls short; None where there is none, or the inputs say too little."""
    member = np.concatenate([m[r] for m, r in zip(cut.member, rows.chosen, strict=True)])
    inside = [np.flatnonzero(member == p) for p in range(len(cut.names))]
    large = [p for p, i in enumerate(inside) if len(i) >= ROWS]
    if len(large) < GROUPS:
        return None
    scores = _scores(rows, [inside[p] for p in large])
    if scores is None:
        return None
    named, y = scores.argmax(axis=1), rows.y
    hits = (named == y).astype(np.float64)
    guess = float(np.bincount(y).max() / len(y))
    means = {p: float(hits[inside[p]].mean()) for p in large}
    if float(np.median(list(means.values()))) - guess < SKILL * (1.0 - guess):
        return None
    odd = min(large, key=lambda p: means[p] - float(_expected(scores, hits, inside, p, large).mean()))
    found = _judged(scores, hits, inside, odd, large, comparisons)
    if found is None:
        return None
    here, expected, chance = found
    own = {p: _own(rows, inside[p]) for p in large}
    others = float(np.median([v for p, v in own.items() if p != odd]))
    confused = _confused(named, y, inside, odd, large, rows.kinds)
    if others > 0 and own[odd] >= OWN * others and confused is None:
        return None
    counts = [np.bincount(v[inside[odd]], minlength=rows.kinds) / len(inside[odd]) for v in (named, y)]
    by_chance = float((counts[0] * counts[1]).sum())
    rest = float(np.mean([hits[inside[p]].mean() for p in large if p != odd]))
    return Noisy(odd, here, expected, rest, min(1.0, (expected - here) / max(1e-9, expected - by_chance)), own[odd],
                 others, chance, confused)


def _confused(named: Array, y: Array, inside: Sequence[Array], odd: int, large: Sequence[int], kinds: int
              ) -> tuple[int, int] | None:
    """Two classes that stand for each other, both ways, in most of the group's misses beyond the usual ones."""
    wrong = np.zeros((len(large), kinds, kinds))
    for k, part in enumerate(large):
        miss = inside[part][named[inside[part]] != y[inside[part]]]
        np.add.at(wrong[k], (y[miss], named[miss]), 1.0 / len(inside[part]))
    at = list(large).index(odd)
    more = np.maximum(0.0, wrong[at] - np.delete(wrong, at, axis=0).mean(axis=0))
    both = np.where(np.minimum(more, more.T) >= BOTH_WAYS * (more + more.T), more + more.T, 0.0)
    a, b = (int(k) for k in np.unravel_index(int(both.argmax()), both.shape))
    return (min(a, b), max(a, b)) if both[a, b] >= CONFUSED * more.sum() > 0 else None


def _scores(rows: Rows, inside: Sequence[Array]) -> Array | None:
    """Scores of each row by the model of the other groups."""
    hot = np.eye(rows.kinds, dtype=np.float32)[rows.y]
    grams = [(rows.x[i].T @ rows.x[i]).astype(np.float64) for i in inside]
    crosses = [(rows.x[i].T @ hot[i]).astype(np.float64) for i in inside]
    gram, cross = np.sum(grams, axis=0), np.sum(crosses, axis=0)
    out = np.zeros((len(rows.y), rows.kinds), np.float32)
    for i, own, mine in zip(inside, grams, crosses, strict=True):
        out[i] = rows.x[i] @ solved(gram - own, cross - mine)
    return out


def _margin(scores: Array) -> Array:
    two = np.sort(scores, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def _expected(scores: Array, hits: Array, inside: Sequence[Array], part: int, large: Sequence[int],
              without: int | None = None) -> Array:
    """The chance of each row of a part that the model is right: that of rows as sure and of the same named class."""
    others = np.concatenate([inside[p] for p in large if p not in (part, without)])
    mine = inside[part]
    margin, named = _margin(scores), scores.argmax(axis=1)
    out = np.full(len(mine), float(hits[others].mean()))
    for kind in np.unique(named[mine]):
        pool = others[named[others] == kind]
        at = np.flatnonzero(named[mine] == kind)
        if len(pool) < 2 * ROWS:
            continue
        edges = np.quantile(margin[pool], np.linspace(0, 1, BINS + 1)[1:-1])
        place, own = (np.searchsorted(edges, margin[i]) for i in (pool, mine[at]))
        share = np.array([hits[pool[place == b]].mean() if (place == b).any() else hits[pool].mean()
                          for b in range(BINS)])
        out[at] = share[own]
    return out


def _judged(scores: Array, hits: Array, inside: Sequence[Array], odd: int, large: Sequence[int], comparisons: float
            ) -> tuple[float, float, float] | None:
    """How often the model is right in the odd group and should be, and the log of the chance of that."""
    margin = _margin(scores)
    outside = np.concatenate([inside[p] for p in large if p != odd])
    if float(np.median(margin[inside[odd]])) < AS_SURE * float(np.median(margin[outside])):
        return None
    short, noise = {}, {}
    for part in large:
        expected = _expected(scores, hits, inside, part, large, odd)
        short[part] = float(expected.mean() - hits[inside[part]].mean())
        noise[part] = float((expected * (1.0 - expected)).sum()) / len(expected) ** 2
    rest = [p for p in large if p != odd]
    spread = max(0.0, float(np.mean([short[p] ** 2 - noise[p] for p in rest])))
    beside = max(abs(short[p]) - math.sqrt(noise[p]) for p in rest)
    times = TIMES if len(large) >= MANY else 2.0 * TIMES
    if short[odd] < max(SHORT, times * beside):
        return None
    z = short[odd] / math.sqrt(noise[odd] + spread * (1.0 + 3.0 / len(rest)) + 1e-12)
    chance = math.log(max(normal_tail(z), 1e-300)) + math.log(comparisons * len(large))
    here = float(hits[inside[odd]].mean())
    return (here, here + short[odd], chance) if chance < math.log(LEVEL) else None


def _own(rows: Rows, inside: Array) -> float:
    """How far above guessing a model of a group's own rows is, by folds; 0 at least."""
    x, y = rows.x[inside], rows.y[inside]
    hot = np.eye(rows.kinds, dtype=np.float32)[y]
    fold, hits = np.arange(len(y)) % 5, np.zeros(len(y))
    for k in range(5):
        out, kept = fold == k, fold != k
        scores = _dual(x[kept], hot[kept], x[out])
        hits[out] = scores.argmax(axis=1) == y[out]
    guess = float(np.bincount(y).max() / len(y))
    return max(0.0, (float(hits.mean()) - guess) / max(1e-9, 1.0 - guess))


def _dual(x: Array, hot: Array, new: Array) -> Array:
    """A ridge regression through the products of rows, of which there are fewer than features."""
    gram = (x @ x.T).astype(np.float64)
    ridge = 0.1 * float(np.trace(gram)) / len(gram)
    return np.asarray((new @ x.T) @ np.linalg.solve(gram + ridge * np.eye(len(gram)), hot))


def labels_of(group: Sequence[Shard], labels: Sequence[str]) -> Iterator[str]:
    """The labels that are called as targets, or the first three of few kinds where none is."""
    there = [n for n in labels if all(n in s.columns and s.columns[n].rows == s.rows for s in group)]
    called = [n for n in there if is_target(n)]
    few = (n for n in there if 2 <= len(np.unique(np.concatenate([keys(s.columns[n]) for s in group]))) <= KINDS)
    yield from called[:3] or islice(few, 3)
