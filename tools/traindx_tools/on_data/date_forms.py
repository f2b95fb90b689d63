"""In which order dates of a part are written: what stands first is the day where it exceeds 12, the month where the
second does. Most days of a year can be read either way, and are read wrongly without an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.on_data.column import Column
from traindx_tools.on_data.shard import Shard

MOST_ROWS = 200_000
"""Rows of a part that are looked at, evenly spread."""
FEWEST = 20
"""Dates of a part."""
DATED = 0.95
"""Share of the texts of a part that are dates."""
_NUMBERS = re.compile(r"\s*(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})(?!\d)")
DAY, MONTH, YEAR, BOTH = "day first", "month first", "year first", "days and months first"


@dataclass(frozen=True)
class Written:
    """Dates of one part. `order`: DAY, MONTH, YEAR, BOTH, or "" where each of them could be read either way."""

    shard: Shard
    order: str
    example: str
    row: int
    """Of the example: the first that shows the order."""
    told: float
    """Share of the dates that can be read in one way alone."""
    open: float
    """Share that another order reads as another day."""


@dataclass(frozen=True)
class Apart:
    """A field whose dates are written in different orders. `odd`: the part that differs from the most."""

    field: str
    odd: Written
    other: Written


def apart(shards: Sequence[Shard]) -> Iterator[Apart]:
    """For each field of dates: the part with the fewest rows whose order another part's contradicts."""
    for name in dict.fromkeys(n for s in shards for n in s.columns):
        found = [w for s in shards if name in s.columns and (w := written(s, s.columns[name])) is not None]
        mixed = next((w for w in found if w.order == BOTH), None)
        known = sorted((w for w in found if w.order), key=lambda w: w.shard.rows)
        odd = mixed or next((w for w in known if w.order == DAY and any(o.order != DAY for o in known)), None)
        other = next((o for o in reversed(known) if odd is not None and o is not odd and o.order != odd.order), odd)
        if odd is not None and other is not None and odd.open > 0:
            yield Apart(name, odd, other)


def written(shard: Shard, column: Column) -> Written | None:
    """How the dates of a part are written; None where it holds none, or too few."""
    if column.kind != "text" or len(column.texts) < max(FEWEST, column.rows):
        return None
    rows = range(0, column.rows, max(1, column.rows // MOST_ROWS))
    found = [(i, m) for i in rows if (m := _NUMBERS.match(column.texts[i])) is not None]
    if len(found) < max(FEWEST, DATED * len(rows)):
        return None
    if all(len(m[1]) == 4 for _, m in found):
        return Written(shard, YEAR, column.texts[found[0][0]], found[0][0], 1.0, 0.0)
    numbers = [(i, int(m[1]), int(m[3])) for i, m in found]
    if any(not (1 <= a <= 31 and 1 <= b <= 31) or min(a, b) > 12 for _, a, b in numbers):
        return None
    day = [i for i, a, _ in numbers if a > 12]
    month = [i for i, _, b in numbers if b > 12]
    order = BOTH if day and month else DAY if day else MONTH if month else ""
    at = (day or month or [numbers[0][0]])[0]
    either = sum(a <= 12 and b <= 12 and a != b for _, a, b in numbers)
    return Written(shard, order, column.texts[at], at, (len(day) + len(month)) / len(numbers), either / len(numbers))
