"""What a file gives by name was read, and the object with these names holds other numbers while the model trains.

A scaler is loaded and fitted again because a flag still says that it was not; statistics are loaded and reset; the
object is made anew below the load. No error is raised: the model gets inputs in another scale than it was trained on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_variables.read_values import ALIKE, APART, FEWEST, Holder, Numbers
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="V105",
    name="read-and-replaced",
    title="Numbers that were read from a file were written over before they are used",
    severity=Severity.HIGH,
    sees="named numbers of small npz and JSON files that the program read, and objects with an attribute or key of "
         "each name and size, at two steps",
    matters="what was stored to be used again is not: inputs in another scale, a state that begins anew",
    alike=("the file was read and another object holds it, or one of its numbers is the same: nothing is said",
           "numbers that move from there (running statistics), and data that were scaled",
           "an object that is fitted anew on purpose; a file of single numbers that is read to compare: a sign"),
    confirm=("print(the attribute) right after the file is read, and before the first step",),
    thresholds={
        "names": Threshold(FEWEST, "names of numbers that are not whole", "counters and settings are other things"),
        "alike": Threshold(ALIKE, "relative difference, below which two numbers are one", "half precision"),
        "apart": Threshold(APART, "relative difference, from which they are two, in most names", "no slip of one"),
    },
)


def check(seen: Iterable[Holder], rank: int = 0) -> Iterator[Finding]:
    """One finding for each file."""
    told: set[str] = set()
    for one in seen:
        if one.of.path in told:
            continue
        told.add(one.of.path)
        name = os.path.basename(one.of.path)
        names = ", ".join(list(one.values)[:6])
        shown = "; ".join(f"{n} {_few(one.values[n])}, in the file {_few(one.of.values[n])}" for n in [*one.values][:2])
        single = all(v.size == 1 for v in one.values.values())  # a best value, a figure: may be compared with, no more
        yield RULE.finding(
            f"{name} was read, and no object holds its {names} when the model trains: {one.kind}, which has all of "
            f"these names, holds others ({shown}): they were overwritten, fitted again or set anew after the file was "
            "read", Location(file=one.of.file or None, line=one.of.line or None, rank=rank),
            "variables of the running program", severity=Severity.LOW if single else None,
            bearing=Bearing.SIGN if single else Bearing.CAUSE,
            measured={"path": name, "names": names, "class": one.kind, "target": f"{one.kind} ({names})"})


def _few(values: Numbers) -> str:
    return " ".join(f"{v:.4g}" for v in values[:3]) + (" ..." if values.size > 3 else "")
