"""Properties that one file of a set states otherwise than its siblings, and whether its numbers show the difference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from traindx_tools.on_data.column import Array, Column, Stated
from traindx_tools.on_data.roles import tells_reading
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

ORDER, NUMBER, TEXT = "order", "number", "text"
USUAL = 3
"""Files that agree, where the names of an order do not show by themselves that two stand for the same."""
AGREE = 2 / 3
"""Share of the files that agree."""
WITHIN = 0.03
"""Of the ratio of two stated numbers, that the ratio of the measured ones is off."""
LEAST = 1.05
"""Times that two stated numbers differ, from which on their ratio is looked for in the data."""
NEARER = 1 / 3
"""Of the distance of the channels as they stand that is left in the stated order."""
MOST_ROWS, MOST_FIELDS = 2_000, 24


@dataclass(frozen=True)
class Apart:
    """A property that `shards` state otherwise than the others. `shown`: where the numbers of the data differ alike."""

    field: str
    what: str
    usual: Stated
    here: Stated
    shards: tuple[Shard, ...]
    others: int
    shown: str = ""

    @property
    def ratio(self) -> float:
        """Of a stated number to the usual one; 1 where they are none."""
        both = isinstance(self.here, float) and isinstance(self.usual, float) and self.usual
        return float(self.here) / float(self.usual) if both else 1.0  # type: ignore[arg-type]

    @property
    def property(self) -> str:
        """Its name without that of the field or group it is of."""
        return self.field.rsplit(".", 1)[-1]


def apart(data: DataSet) -> Iterator[Apart]:
    """The properties of a set, one by one."""
    files = list({_file(s): s for s in data.shards if s.stated}.values())
    for name in dict.fromkeys(n for s in files for n in s.stated):
        having = [s for s in files if name in s.stated]
        found = _one(name, having) if len(having) > 1 else None
        if found is not None:
            yield found


def _file(shard: Shard) -> str:
    return next((c.file for c in shard.columns.values()), shard.name)


def _one(name: str, having: Sequence[Shard]) -> Apart | None:
    votes = Counter(s.stated[name] for s in having)
    if len(votes) == 1:
        return None
    first = max(votes.values())
    usual = next(s.stated[name] for s in sorted(having, key=lambda s: s.split not in ("", "train"))
                 if votes[s.stated[name]] == first)
    like = [s for s in having if s.stated[name] == usual]
    odd = tuple(s for s in having if s.stated[name] != usual)
    here = odd[0].stated[name]
    what = _what(usual, [s.stated[name] for s in odd])
    if what is None or any(_is_length(s.stated[name], s) for s in having):
        return None
    if what != ORDER and (len(like) < USUAL or len(like) < AGREE * len(having)):
        return None
    shown = _reordered(usual, here, like, odd[0]) if what == ORDER else _scaled(usual, here, like, odd[0])
    if what == TEXT and not tells_reading(name):
        return None
    return Apart(name, what, usual, here, tuple(s for s in odd if s.stated[name] == here), len(like), shown)


def _what(usual: Stated, others: Sequence[Stated]) -> str | None:
    """An order where all are the same texts; None where the kinds differ."""
    if isinstance(usual, tuple):
        names = [o for o in others if isinstance(o, tuple)]
        same = len(names) == len(others) and all(Counter(o) == Counter(usual) for o in names)
        return ORDER if same and isinstance(usual[0], str) and len(set(usual)) == len(usual) else None
    if isinstance(usual, float):
        return NUMBER if all(isinstance(o, float) for o in others) else None
    return TEXT if all(isinstance(o, str) for o in others) else None


def _is_length(value: Stated, shard: Shard) -> bool:
    """Whether a number counts rows or an axis of this file: each file has its own."""
    if not isinstance(value, float):
        return isinstance(value, tuple) and len(value) == shard.total
    sizes = {n for c in shard.columns.values() for n in (c.rows, *c.values.shape)}
    return value.is_integer() and int(value) in sizes | {shard.rows, shard.total}


def _reordered(usual: Stated, here: Stated, like: Sequence[Shard], odd: Shard) -> str:
    """The field whose channels come near those of the others in the stated order, "" for none."""
    if not (isinstance(usual, tuple) and isinstance(here, tuple)):
        return ""
    at = [here.index(n) for n in usual]
    for name, column in odd.columns.items():
        for axis, size in enumerate(column.row_shape):
            beside = [s.columns[name] for s in like if name in s.columns
                      and len(s.columns[name].row_shape) > axis and s.columns[name].row_shape[axis] == len(usual)]
            if size != len(usual) or not beside:
                continue
            means = np.array([_means(c, axis) for c in beside])
            mine, spread = _means(column, axis), float(means.mean(axis=0).std())
            as_is = float(np.abs(mine - means.mean(axis=0)).mean())
            turned = float(np.abs(mine[at] - means.mean(axis=0)).mean())
            if spread > 0 and turned < NEARER * as_is:
                return f"the means along an axis of {name} come near those of the others in that order"
    return ""


def _means(column: Column, axis: int) -> Array:
    values = np.asarray(column.values[:: max(1, column.rows // MOST_ROWS)])
    with np.errstate(all="ignore"):
        found: Array = np.nan_to_num(np.moveaxis(values, axis + 1, 0).reshape(values.shape[axis + 1], -1)
                                     .astype(np.float64).mean(axis=1))
    return found


def _scaled(usual: Stated, here: Stated, like: Sequence[Shard], odd: Shard) -> str:
    """What differs from that of the others by the same ratio, in words, "" for nothing."""
    if not (isinstance(usual, float) and isinstance(here, float)) or usual * here <= 0:
        return ""
    ratio = here / usual
    for called, mine, theirs in _measured(odd, like):
        usable = mine > 0 and len(theirs) >= 2 and min(theirs) > 0 and max(theirs) <= (1 + WITHIN) * min(theirs)
        if usable and is_ratio(times := mine / float(np.median(theirs)), ratio):
            return f"{called} is {times:.3g} times that of the others"
    return ""


def _measured(odd: Shard, like: Sequence[Shard]) -> Iterator[tuple[str, float, list[float]]]:
    """What may go along with a stated number, of a file and of each other one: spreads, lengths, ratios of counts."""
    names = [n for n in odd.columns if all(n in s.columns for s in like)][:MOST_FIELDS]
    for name in names:
        for called, measure in (("spread", _spread), ("length", _length)):
            yield f"the {called} of {name}", measure(odd.columns[name]), [measure(s.columns[name]) for s in like]
    counts = [n for n in names if not odd.columns[n].row_shape and odd.columns[n].values.dtype.kind in "iu"
              and odd.columns[n].kind == "number"]
    for one, other in combinations(counts, 2):
        yield f"{one} over {other}", _over(odd, one, other), [_over(s, one, other) for s in like]


def _over(shard: Shard, one: str, other: str) -> float:
    """The median ratio of two numbers of a row, 0 where there is none."""
    above, below = (np.asarray(shard.columns[n].values[:MOST_ROWS], np.float64) for n in (one, other))
    both = (below > 0) & (above > 0) if above.shape == below.shape else np.zeros(0, bool)
    return float(np.median(above[both] / below[both])) if both.any() else 0.0


def is_ratio(measured: float, stated: float) -> bool:
    """Whether a measured ratio is a stated one, or one over it."""
    if not (measured > 0 and stated > 0 and max(stated, 1 / stated) >= LEAST):
        return False
    return min(abs(math.log(measured / stated)), abs(math.log(measured * stated))) < WITHIN


def _spread(column: Column) -> float:
    if column.kind != "number" or column.values.dtype.kind != "f":
        return 0.0
    values = np.asarray(column.values[:: max(1, column.rows // MOST_ROWS)], np.float64)
    return float(np.nanstd(values)) if values.size else 0.0


def _length(column: Column) -> float:
    if column.kind == "sequence" and column.offsets is not None:
        return float(np.diff(column.offsets).mean()) if column.rows else 0.0
    return float(column.row_shape[0]) if column.row_shape else 0.0
