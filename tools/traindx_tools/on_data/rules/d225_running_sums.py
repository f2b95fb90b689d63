"""In some parts a number runs on as a sum along the rows, where all others hold what was added; or the other way round.

A meter's reading and what was used in an hour, all steps so far and those of a minute. Such a part never falls, its
steps are distributed as the values of the others, and its level means nothing. Parts may have levels of their own:
they are compared in units of their own median.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, cuts_of, told_by_another_field
from traindx_tools.on_data.places import listed, number, place, short
from traindx_tools.on_data.roles import is_identifier, is_row_id, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import distance
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST, OTHERS, MOST_PARTS = 60, 2, 400
RISES, USUAL, MOST_ODD = 0.995, 0.9, 0.4
ALIKE, APART = 0.15, 0.5
KINDS = 12
MOST_FIELDS = 24

RULE = Rule(
    id="D225",
    name="running-sums",
    title="A number is a running sum in some parts, and not in the others",
    severity=Severity.HIGH,
    sees="by file and group, along the rows: whether a number ever falls, and whether its steps are distributed as the "
         "values of the other parts",
    matters="The same number is an amount in one part and all amounts so far in another: their scales have nothing in "
            "common, and the sum grows with the row.",
    alike=("A counter in every part: nothing is said.", "A number that rises by its nature: its steps are no values of "
           "the others.", "A field that says what the part holds: a remark."),
    confirm=("Plot the number of the named part along its rows beside that of another one.",
             "Take differences within the part in a copy, and compare distributions."),
    thresholds={
        "rows": Threshold(FEWEST, "rows", "of every part"),
        "rises": Threshold(RISES, "of the steps", "that do not fall, in the part"),
        "usual": Threshold(USUAL, "of the steps", "that do not fall elsewhere, at most"),
        "alike": Threshold(ALIKE, "distance of distribution functions", "of steps and values, beyond sampling"),
        "apart": Threshold(APART, "distance of distribution functions", "of the values themselves, at least"),
        "odd": Threshold(MOST_ODD, "of the parts", "that may be so, else nobody knows which are meant"),
    },
)


@dataclass(frozen=True)
class _Sums:
    """`parts` of a cut that are running sums, or that alone are none (`kind`: sums, steps)."""

    kind: str
    parts: tuple[int, ...]
    apart: float


def check(view: View) -> Iterator[Finding]:
    """One finding for each field, by the first way to cut the rows that tells it."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows and s.numbers is None)
        fields = [n for n in group[0].columns if all(_is_asked(s, n) for s in group)][:MOST_FIELDS] if group else []
        cuts = [c for c in cuts_of(group, data.labels) if len(c.names) <= MOST_PARTS] if fields else []
        for name in fields:
            values = np.concatenate([np.asarray(s.columns[name].values, np.float64).reshape(-1) for s in group])
            for cut in (c for c in cuts if c.by != name):
                found = _odd([values[np.concatenate(cut.member) == p] for p in range(len(cut.names))])
                if found is not None:
                    yield _finding(group, name, cut, found)
                    break


def _is_asked(shard: Shard, name: str) -> bool:
    column = shard.columns.get(name)
    return (column is not None and column.kind == "number" and column.rows == shard.rows and column.missing is None
            and int(np.prod(column.row_shape)) == 1 and column.values.dtype.kind in "iuf" and not is_time(name)
            and not is_row_id(column) and not is_identifier(column) and len(np.unique(column.values[:2000])) >= KINDS)


def _odd(parts: Sequence[Array]) -> _Sums | None:
    kept = {k: p[np.isfinite(p)] for k, p in enumerate(parts) if len(p) >= FEWEST}
    kept = {k: p for k, p in kept.items() if len(p) >= FEWEST}
    if len(kept) <= OTHERS:
        return None
    rises = {k: float((np.diff(p) >= 0).mean()) for k, p in kept.items()}
    sums = [k for k, r in rises.items() if r >= RISES and kept[k][-1] > kept[k][0]]
    rest = [k for k in kept if k not in sums]
    if not sums or not rest or max(rises[k] for k in rest) > USUAL:
        return None
    kind, odd, usual = ("sums", sums, rest) if len(sums) <= len(rest) else ("steps", rest, sums)
    if len(odd) > MOST_ODD * len(kept) or len(usual) < OTHERS:
        return None
    values = np.sort(np.concatenate([_scaled(kept[k] if kind == "sums" else np.diff(kept[k])) for k in usual]))
    apart = []
    for k in odd:
        steps = np.sort(_scaled(np.diff(kept[k]) if kind == "sums" else kept[k]))
        noise = 1.36 * math.sqrt(1.0 / len(steps) + 1.0 / len(values))
        raw = np.sort(kept[k]), np.sort(np.concatenate([kept[u] for u in usual]))
        if not len(steps) or distance(steps, values) > ALIKE + noise or distance(*raw) < APART:
            return None
        apart.append(distance(*raw))
    return _Sums(kind, tuple(odd), max(apart))


def _scaled(values: Array) -> Array:
    """In units of the median magnitude: parts have levels of their own."""
    size = float(np.median(np.abs(values[values != 0]))) if (values != 0).any() else 1.0
    return np.asarray(values / size)


def _finding(group: Sequence[Shard], name: str, cut: Cut, found: _Sums) -> Finding:
    first = found.parts[0]
    at = next(i for i, m in enumerate(cut.member) if (m == first).any())
    declared = told_by_another_field(group, cut, first, (name,))
    own = listed([cut.told(p) for p in found.parts])
    said = (f"{name} is a running sum in {own}: it never falls along the rows, and its steps are distributed as the "
            f"values of the {len(cut.names) - len(found.parts)} other parts" if found.kind == "sums" else
            f"{name} is no running sum in {own}, as it is in the {len(cut.names) - len(found.parts)} other parts: its "
            "values are distributed as the steps of the others (it was differenced there)")
    values = np.asarray(group[at].columns[name].values, np.float64).reshape(-1)[cut.member[at] == first]
    said += f"; it goes from {number(float(values[0]))} to {number(float(values[-1]))} in {cut.told(first)}"
    return RULE.finding(
        said + (f"; {declared}" if declared else ""),
        place(group[at], name),
        group[at].name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None,
        measured={"field": name, "by": cut.by or "file", "part": cut.names[first], "parts": len(found.parts),
                  "apart": found.apart, "kind": "declared" if declared else found.kind, "shard": short(group[at]) if
                  cut.by == "" else ""},
    )
