"""A field is the slope of a number along another field in all parts, and with another sign or unit in one.

Forces are what an energy falls by: to the nearest row it changes by less the force times the step. In one file it
changes by the force times the step, or by 27 times as much: gradients were stored there, or another unit. Of a force
and an energy, called so, the sign is known without another part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.cuts import told_by_another_field
from traindx_tools.on_data.line_integrals import (
    ALIKE,
    ALONG,
    APART,
    FEWEST,
    OTHERS,
    Slope,
    gradients_for_forces,
    odd_slopes,
)
from traindx_tools.on_data.places import number, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D220",
    name="slope-of-part",
    title="A field is the slope of a number with another sign or unit in one part",
    severity=Severity.HIGH,
    sees="changes of a number from each row to the nearest beside a field times the step of another (trapezoidal rule)",
    matters="Slopes of that part contradict the numbers beside them and the slopes of all others: a model that fits "
            "one cannot fit the other.",
    alike=("Two parts only: nothing says which of both is meant.",
           "Rows too far apart for a slope to tell the change: nothing is said.",
           "A field that says what the part holds: a remark."),
    confirm=("Take two neighbouring rows of the part: the number's change beside the field times the step.",
             "Turn the sign, or divide by the factor, in a copy of the part, and compare the loss on it."),
    thresholds={
        "rows": Threshold(FEWEST, "rows", "of every part"),
        "others": Threshold(OTHERS, "parts", "beside the odd one"),
        "along": Threshold(ALONG, "correlation", "of the changes with what the slope says of them, in every part"),
        "alike": Threshold(ALIKE, "times", "by which the factors of all other parts differ, at most"),
        "apart": Threshold(APART, "times", "by which that of the odd one does, at least"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each number and pair of fields."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows and s.numbers is None)
        for found in odd_slopes(group, data.labels) if group else ():
            yield _finding(group, found)
        every = next(gradients_for_forces(group), None) if group else None
        if every is not None:
            yield _of_all(group, every)


def _of_all(group: Sequence[Shard], found: Slope) -> Finding:
    """What is called a force, and is a gradient in every part."""
    return RULE.finding(
        f"{found.slope} of {short(group[0])}{f' and {len(group) - 1} more' if len(group) > 1 else ''} is the gradient "
        f"of {found.number} and not the force, in all parts: to the nearest row {found.number} rises by {found.slope} "
        f"times the step in {found.along}, where it falls along a force (dE = -F dx); the sign is turned (correlation "
        f"of {number(found.fits[0])} at least, {found.rows:,} rows)",
        place(group[0], found.slope),
        group[0].name,
        bearing=Bearing.CAUSE,
        measured={"field": found.slope, "fields": (found.slope,), "inputs": (found.number, found.along), "by": "all",
                  "part": "all", "own": found.own, "usual": found.usual, "shard": short(group[0]), "kind": "gradient"},
    )


def _finding(group: Sequence[Shard], found: Slope) -> Finding:
    at = next(i for i, m in enumerate(found.cut.member) if (m == found.part).any())
    declared = told_by_another_field(group, found.cut, found.part, (found.number, found.along, found.slope))
    ratio = found.own / found.usual
    turned = "its sign is turned" if 1 / ALIKE < -ratio < ALIKE else (
        f"it is in another unit, {number(abs(1 / ratio))} times" + (", with its sign turned" if ratio < 0 else ""))
    said = (
        f"{found.slope} of {found.cut.told(found.part)} is the slope of {found.number} along {found.along} times "
        f"{number(1 / found.own)}, and times {number(1 / found.usual)} in the {len(found.cut.names) - 1} other parts: "
        f"{turned}. To the nearest row {found.number} changes as {found.slope} times the step says, with a correlation "
        f"of {number(found.fits[0])} there and of {number(found.fits[1])} at least elsewhere ({found.rows:,} rows)"
    )
    return RULE.finding(
        said + (f"; {declared}" if declared else ""),
        place(group[at], found.slope),
        group[at].name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None,
        measured={"field": found.slope, "fields": (found.slope,), "inputs": (found.number, found.along),
                  "by": found.cut.by or "file", "part": found.cut.names[found.part], "own": found.own,
                  "usual": found.usual, "shard": short(group[at]),
                  "kind": "turned" if 1 / ALIKE < -ratio < ALIKE else "unit"},
    )
