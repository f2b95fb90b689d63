"""Some numbers of one part were read with another sign for thousands.

`1,234` that is read as 1.234 becomes a thousandth, and `234` stays as it is: a part of the rows of one branch is a
thousandth of what it was, and can be told from the rest. These numbers have three digits behind the point where all
others have fewer; times a thousand, the part is distributed as the others are. The same of `1.234` in whole numbers
that were read without the point, which become a hundred or a thousand times as large, is told by D142.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, cuts_of, told_by_another_field
from traindx_tools.on_data.places import number, percent, place, short
from traindx_tools.on_data.roles import is_id_name, is_row_id
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 12
USUAL = 0.01
DIGITS = 2
MOST_FIELDS = 60
BEYOND = 0.02

RULE = Rule(
    id="D160",
    name="read-otherwise",
    title="Numbers of one part were read with another sign for thousands",
    severity=Severity.HIGH,
    sees="digits behind the point of each number by part, and where these numbers lie before and after a factor",
    matters="The largest numbers of this part became the smallest, and the others beside them did not.",
    alike=("A part that is measured more finely throughout: all of its numbers have more digits.",
           "Another currency or unit: all numbers of the part are off."),
    confirm=("Look for the named rows in the file that they were read from.",
             "Read it again with the separators of its language (decimal=',', thousands='.')."),
    thresholds={
        "rows": Threshold(FEWEST, "rows", "of the part with three digits behind the point"),
        "usual": Threshold(USUAL, "share of the other rows", "with three digits, at most"),
        "beyond": Threshold(BEYOND, "share of the other rows", "from a thousand on, at least"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts and fields"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each part, with the field of most such rows."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        amounts = [n for n in group[0].columns if _is_amount(group, n)][:MOST_FIELDS] if group else []
        names = {n: made for n in amounts if (made := _values(group, n)) is not None}
        cuts = list(cuts_of(group, data.labels)) if names else []
        parts = sum(len(c.names) for c in cuts)
        told: set[str] = set()
        for cut in cuts:
            for name in (n for n in names if n not in told and n != cut.by):
                found = _of_field(*names[name], cut, view.comparisons * max(1, parts))
                if found is not None:
                    told.add(name)
                    yield _finding(data, group, name, cut, *found)


def _is_amount(group: Sequence[Shard], name: str) -> bool:
    columns = [c for s in group if (c := s.columns.get(name)) is not None and c.kind == "number" and not c.row_shape
               and c.rows == s.rows]
    return len(columns) == len(group) and any(c.values.dtype.kind == "f" for c in columns) and not is_id_name(
        name) and not any(is_row_id(c) for c in columns)


def fine(values: Array) -> Array:
    """bool: numbers with three digits behind the point and no fewer than one before it, below a thousand."""
    size = np.abs(values)
    thousandths = np.round(size * 1000)
    with np.errstate(invalid="ignore"):
        exact = np.abs(size * 1000 - thousandths) < 1e-6 * np.maximum(1.0, size * 1000)
        return np.asarray(exact & (np.mod(thousandths, 10) != 0) & (size >= 1) & (size < 1000))


def _values(group: Sequence[Shard], name: str) -> tuple[Array, Array] | None:
    """The numbers of all rows, and which are fine; None where hardly any is, or most are."""
    values = np.concatenate([np.asarray(s.columns[name].values, np.float64) for s in group])
    finer = fine(values)
    return (values, finer) if FEWEST <= int(finer.sum()) <= len(values) // 2 else None


def _of_field(values: Array, finer: Array, cut: Cut, tries: float) -> tuple[int, Array, Array] | None:
    member = np.concatenate(cut.member)
    counts = np.bincount(member[finer & (member >= 0)], minlength=len(cut.names))
    part = int(counts.argmax())
    mine, rest = values[member == part], values[(member != part) & np.isfinite(values)]
    odd = fine(mine)
    if counts[part] < FEWEST or not len(rest) or float(fine(rest).mean()) > USUAL or odd.mean() > 0.95:
        return None
    # where three digits are usual, nine of ten have another last one than 0: they would be all of the part
    plain = mine[~odd & np.isfinite(mine)]
    if float(_has_decimals(plain, DIGITS).mean() if len(plain) else 0.0) > USUAL:
        return None
    beyond = float((np.abs(rest) >= 1000).mean())
    here = float((np.abs(mine) >= 1000).mean())
    after = float(((np.abs(mine) >= 1000) | odd).mean())
    if beyond < BEYOND or here > beyond / 4 or not beyond / 3 <= after <= min(1.0, 3 * beyond + 0.1):
        return None
    missing = share_tail(int((np.abs(mine) < 1000).sum()), len(mine), 1.0 - beyond) * tries
    return (part, mine[odd], rest) if missing < LEVEL else None


def _has_decimals(values: Array, digits: int) -> Array:
    """Whether a number has more digits behind the point than those."""
    scaled = np.abs(values) * 10.0**digits
    return np.asarray(np.abs(scaled - np.round(scaled)) > 1e-6 * np.maximum(1.0, scaled))


def _finding(data: DataSet, group: Sequence[Shard], name: str, cut: Cut, part: int, odd: Array, rest: Array
             ) -> Finding:
    at = next(i for i, m in enumerate(cut.member) if (m == part).any())
    mine = np.concatenate([m == part for m in cut.member])
    declared = told_by_another_field(group, cut, part, [name])
    usual = float(np.median(np.abs(rest)[np.abs(rest) >= 1000]))
    column = np.asarray(group[at].columns[name].values, np.float64)
    rows = np.flatnonzero((cut.member[at] == part) & fine(column))
    said = (
        f"{len(odd)} of the {int(mine.sum())} numbers of {name} of {cut.told(part)} have three digits behind the point "
        f"(median {number(float(np.median(odd)))}) and none is a thousand or more, where "
        f"{percent(float((np.abs(rest) >= 1000).mean()))} of all others are (median {number(usual)}) and hardly any "
        "has such digits: the sign for thousands was read as a point, and these are a thousandth of what they were"
    )
    said += f"; {declared}" if declared else ""
    return RULE.finding(
        said,
        place(group[at], name),
        group[at].name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None,
        measured={
            "field": name, "by": cut.by or "file", "part": cut.names[part], "count": len(odd), "factor": 1000.0,
            "rows": tuple(int(r) for r in rows[:20]), "digits": math.ceil(math.log10(1000)),
            "kind": "declared" if declared else "thousands", "shard": short(group[at]),
        },
    )
