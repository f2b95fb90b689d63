"""What an id determines in each part of the rows, and how far parts agree on it.

An id of a station or an item goes along with numbers (the mean temperature there), with classes (its region) and with
how often it occurs. These statistics of each id are compared between a part and all other parts by their rank
correlation, ids weighted by their rows. Where ids mean the same everywhere all parts agree; a part whose ids were
numbered otherwise agrees with none, and its own two halves agree with each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import Cut
from traindx_tools.on_data.roles import is_identifier, is_row_id, is_time, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, normal_tail

FEWEST_IDS = 12
MOST_IDS = 20_000
EACH = 3
"""Rows of an id, in a part and outside, from which on its mean is compared."""
AGREES = 0.5
"""Correlation with the others that parts have at least."""
LOST = 0.4
"""Of that correlation, the most that is left in the odd part."""
OWN = 0.6
"""Of the others' agreement, the least that the two halves of the odd part have: its ids mean something."""
KEPT = 0.7
"""Of the others' agreement, from which on a quantity is in the odd part as everywhere."""
SMOOTH = 0.7
"""Correlation of neighbouring ids from which on a number is a measure and no id."""
FOLLOWS = 0.9
"""Rank correlation with the number of items of a field from which on a number is that count, cut or in other units."""
EDGE = 0.05
"""Share of a part's rows beyond each end of the stretch that it is said to hold."""
MOST_COUNTED = 2**26
COUNT = "how often it occurs"
KINDS = 30
MOST_KINDS = 4
FEATURES = 8
MOST_STATISTICS = 24
MOST_LOOKED = 60_000
"""Rows that are looked at: of more, every second or third of each part."""
MOST_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class Quantity:
    """A number of each row whose mean by id is compared; the count of rows has none."""

    field: str
    told: str
    values: Array | None


@dataclass(frozen=True, eq=False)
class Lost:
    """A quantity that one part's ids do not determine as those of all others do."""

    quantity: Quantity
    here: float
    """Correlation of this part's means with those of the others."""
    others: float
    """The least of the same of any other part; the correlation of the halves where there are two parts."""
    own: float
    """Correlation of the two halves of this part."""
    log_chance: float


@dataclass(frozen=True, eq=False)
class Ids:
    """A field of ids: the place of each row's id among the sorted `kinds`, and the part of each row."""

    field: str
    kinds: Array
    code: Array
    whole: bool
    """Whether they are numbers."""

    def means(self, quantity: Quantity, rows: Array) -> tuple[Array, Array]:
        """float64 shape (ids,): mean and rows of each id; of the count both are the rows."""
        at = self.code[rows]
        counts = np.bincount(at, minlength=len(self.kinds)).astype(np.float64)
        if quantity.values is None:
            return counts, counts
        sums = np.bincount(at, weights=quantity.values[rows], minlength=len(self.kinds))
        return sums / np.maximum(1.0, counts), counts


def ids_of(group: Sequence[Shard], name: str) -> Ids | None:
    """The ids that a field holds in all files; None where its values are few, or one a row, or no ids by their form."""
    columns = [s.columns.get(name) for s in group]
    if not all(c is not None and _may_be_ids(c, s.rows) for c, s in zip(columns, group, strict=True)):
        return None
    whole = all(c is not None and c.kind == "number" for c in columns)
    if whole and is_length(group, name):
        return None
    every = np.concatenate([keys(c) for c in columns if c is not None])
    kinds, code = np.unique(every, return_inverse=True)
    if not FEWEST_IDS <= len(kinds) <= min(MOST_IDS, len(every) // EACH):
        return None
    return Ids(name, kinds, code.astype(np.int64), whole)


def _may_be_ids(column: Column, rows: int) -> bool:
    if column.rows != rows or column.row_shape or column.missing is not None or is_time(column.name):
        return False
    if column.kind == "text":
        return column.digests is not None and len(column.texts) == rows and not is_identifier(column)
    return column.kind == "number" and column.values.dtype.kind in "iu" and not is_row_id(column)


def quantities_of(group: Sequence[Shard], ids: str, fields: Sequence[str]) -> Iterator[Quantity]:
    """The count, ranks of numbers within their file, and shares of the values of fields of few kinds."""
    yield Quantity(ids, COUNT, None)
    made = 0
    for name in fields:
        columns = [c for s in group if (c := s.columns.get(name)) is not None and c.rows == s.rows]
        if name == ids or len(columns) < len(group) or any(is_identifier(c) or c.missing is not None for c in columns):
            continue
        for found in _of_columns(name, columns):
            if made == MOST_STATISTICS:
                return
            made += 1
            yield found


def _of_columns(name: str, columns: Sequence[Column]) -> Iterator[Quantity]:
    kinds = {c.kind for c in columns}
    if kinds == {"number"} and all(c.values.dtype.kind in "iufb" for c in columns):
        flat = [np.asarray(c.values).reshape(c.rows, -1) for c in columns]
        if len({f.shape[1] for f in flat}) > 1 or flat[0].shape[1] > 256:
            return
        for k in range(min(FEATURES, flat[0].shape[1])):
            values = [np.asarray(f[:, k], np.float64) for f in flat]
            if all(np.isfinite(v).all() for v in values):
                yield Quantity(name, f"the mean of {name}" + (f" (feature {k})" if flat[0].shape[1] > 1 else ""),
                               np.concatenate([_ranks(v) for v in values]))
    elif kinds == {"text"} and all(c.digests is not None and len(c.texts) == c.rows for c in columns):
        every = np.concatenate([keys(c) for c in columns])
        if len(np.unique(every[:2000])) > KINDS:
            return
        found, counts = np.unique(every, return_counts=True)
        for kind in found[np.argsort(-counts)][:MOST_KINDS] if 2 <= len(found) <= KINDS else ():
            at = int(np.flatnonzero(every == kind)[0])
            said = [t for c in columns for t in c.texts][at][:30]
            yield Quantity(name, f"the share of {name} {said!r}", (every == kind).astype(np.float64))


def _ranks(values: Array) -> Array:
    """Ranks as shares: what a file scales or shifts stays."""
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - 0.5 * counts
    return np.asarray(middle[at] / max(1, len(values)))


@dataclass(frozen=True)
class Agreement:
    """A weighted rank correlation of ids, and how many ids that is worth."""

    r: float
    ids: float


def agreement(a: tuple[Array, Array], b: tuple[Array, Array], count: bool = False) -> Agreement:
    """Of the means of ids of two sets of rows, each with its counts. Ids of one side alone say nothing."""
    both = (a[1] > 0) & (b[1] > 0) if count else (a[1] >= EACH) & (b[1] >= EACH)
    if both.sum() < FEWEST_IDS:
        return Agreement(0.0, 0.0)
    weight = a[1][both] * b[1][both] / (a[1][both] + b[1][both])
    weight = np.minimum(weight, 5.0 * np.median(weight))
    if count:
        weight = np.ones(int(both.sum()))
    x, y = _ranks(a[0][both]), _ranks(b[0][both])
    x, y = x - np.average(x, weights=weight), y - np.average(y, weights=weight)
    spread = math.sqrt(float((weight * x * x).sum()) * float((weight * y * y).sum()))
    effective = float(weight.sum()) ** 2 / float((weight**2).sum())
    return Agreement(float((weight * x * y).sum()) / spread if spread > 0 else 0.0, effective)


def is_smooth(ids: Ids, quantity: Quantity, rows: Array) -> bool:
    """Whether neighbouring ids are alike in it: then the number measures something, and is no id of it.

    Of how often they occur, ids without a row count as well.
    """
    mean, counts = ids.means(quantity, rows)
    seen = np.flatnonzero(counts >= (EACH if quantity.values is not None else 0))
    if not ids.whole or len(seen) < FEWEST_IDS:
        return False
    ranks = _ranks(mean[seen])
    spread = float(ranks.std())
    return spread == 0 or float(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) >= SMOOTH


@dataclass(frozen=True, eq=False)
class OddPart:
    """A part, what is lost in it, and whether something that all parts agree on is as everywhere in it."""

    part: int
    lost: tuple[Lost, ...]
    kept: bool


def odd_part(ids: Ids, quantities: Sequence[Quantity], cut: Cut, comparisons: float) -> OddPart | None:
    """The one part of a cut in which quantities lost their agreement; None where there are none, or several."""
    member = np.concatenate(cut.member)
    step = -(-len(member) // MOST_LOOKED)
    rows = [np.flatnonzero(member == p)[::step] for p in range(len(cut.names))]
    judge = _of_two if len(rows) == 2 else _of_quantity
    made = [one for q in quantities if (one := judge(ids, q, rows, comparisons)) is not None]
    parts = {p for p, one in made if one.log_chance < math.log(LEVEL)}
    if len(parts) != 1:
        return None
    part = parts.pop()
    lost = tuple(one for p, one in made if p == part and one.log_chance < math.log(LEVEL))
    fields = {one.quantity.field for one in lost}
    kept = any(one.quantity.field not in fields and one.others >= AGREES and one.here >= KEPT * one.others
               for _, one in made if one.quantity.values is not None)
    return OddPart(part, lost, kept)


def _of_two(ids: Ids, quantity: Quantity, rows: Sequence[Array], comparisons: float) -> tuple[int, Lost] | None:
    """Of two parts: both agree with themselves, and not with each other. The one of fewer rows is the odd one."""
    count = quantity.values is None
    if not count and is_smooth(ids, quantity, np.concatenate(rows)):
        return None
    across = agreement(ids.means(quantity, rows[0]), ids.means(quantity, rows[1]), count)
    own = [_halves(ids, quantity, r) for r in rows]
    odd = int(len(rows[1]) <= len(rows[0]))
    if across.ids < FEWEST_IDS or (count and is_ordered(ids, rows)):
        return None
    return odd, _lost(quantity, across, min(own), min(own), across.ids, comparisons)


def _lost(quantity: Quantity, here: Agreement, least: float, own: float, worth: float, comparisons: float) -> Lost:
    """With the chance of a correlation so far below the least of the others, 1 where it is none that counts."""
    if least < AGREES or abs(here.r) > LOST * least or own < OWN * least:
        return Lost(quantity, here.r, least, own, 0.0)
    z = (math.atanh(min(least, 0.999)) - math.atanh(here.r)) / math.sqrt(2.0 / max(1.0, worth - 3.0))
    chance = math.log(max(normal_tail(z), 1e-300)) + math.log(max(1.0, comparisons))
    return Lost(quantity, here.r, least, own, chance)


def _of_quantity(ids: Ids, quantity: Quantity, rows: Sequence[Array], comparisons: float) -> tuple[int, Lost] | None:
    """Of three parts and more: the part that agrees least with the others, which agree without it."""
    count = quantity.values is None
    means = [ids.means(quantity, r) for r in rows]
    if not count and is_smooth(ids, quantity, np.concatenate(rows)):
        return None
    first = [agreement(m, _others(means, {i}, count), count) for i, m in enumerate(means)]
    odd = min(range(len(rows)), key=lambda i: (first[i].r if first[i].ids else 2.0))
    here = first[odd]
    rest = [agreement(m, _others(means, {i, odd}, count), count) for i, m in enumerate(means) if i != odd]
    judged = [a for a in rest if a.ids]
    if here.ids < FEWEST_IDS or len(judged) < 2 or (count and _is_measure(ids, quantity, rows, odd)):
        return None
    worth = min(here.ids, min(a.ids for a in judged))
    return odd, _lost(quantity, here, min(a.r for a in judged), _halves(ids, quantity, rows[odd]), worth,
                      comparisons * len(rows))


def _is_measure(ids: Ids, quantity: Quantity, rows: Sequence[Array], odd: int) -> bool:
    """Whether how often a number occurs is that of a measure: rows sorted by it, or neighbours alike everywhere else.

    An odd part whose ids were sorted by their count has neighbours alike, and the others have not.
    """
    rest = np.concatenate([r for i, r in enumerate(rows) if i != odd])
    return is_ordered(ids, rows) or is_smooth(ids, quantity, rest)


def is_ordered(ids: Ids, rows: Sequence[Array]) -> bool:
    """Whether two parts hold other stretches of the numbers: rows were put into parts by their size (buckets)."""
    if not ids.whole:
        return False
    ends = [np.quantile(ids.code[r], (EDGE, 1 - EDGE)) for r in rows if len(r)]
    return len(ends) > 1 and max(low for low, _ in ends) > min(high for _, high in ends)


def is_length(group: Sequence[Shard], name: str) -> bool:
    """Whether a number counts items of the row's own fields: characters, items of a sequence, values that are not zero.

    By rank correlation over the rows of the files together.
    """
    own = np.concatenate([np.asarray(s.columns[name].values) for s in group])
    for other in group[0].columns:
        columns = [c for s in group if (c := s.columns.get(other)) is not None and c.rows == s.rows]
        counted = [_items(c) for c in columns] if other != name and len(columns) == len(group) else []
        sizes = [c for c in counted if c is not None]
        if sizes and len(sizes) == len(group) and _follows(own, np.concatenate(sizes)):
            return True
    return False


def _items(column: Column) -> Array | None:
    if column.kind != "number":
        return np.asarray(column.lengths)
    if len(column.row_shape) != 1 or column.values.size > MOST_COUNTED:
        return None
    return np.asarray((column.values != 0).sum(axis=1))


def _follows(one: Array, other: Array) -> bool:
    if not other.size or other.min() == other.max():
        return False
    return bool(np.corrcoef(_ranks(one), _ranks(other))[0, 1] >= FOLLOWS)


def _others(means: Sequence[tuple[Array, Array]], without: set[int], count: bool) -> tuple[Array, Array]:
    """Mean and rows of each id over the other parts."""
    kept = [m for i, m in enumerate(means) if i not in without]
    total = np.sum([c for _, c in kept], axis=0)
    if count:
        return total, total
    return np.sum([m * c for m, c in kept], axis=0) / np.maximum(1.0, total), total


def _halves(ids: Ids, quantity: Quantity, rows: Array) -> float:
    """Correlation of every second row with the others."""
    if quantity.values is None:
        return agreement(ids.means(quantity, rows[::2]), ids.means(quantity, rows[1::2]), count=True).r
    low = [ids.means(quantity, rows[k::2]) for k in (0, 1)]
    return agreement(low[0], low[1]).r
