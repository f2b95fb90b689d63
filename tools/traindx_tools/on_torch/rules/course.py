"""Places of facts: what the rules on the whole course of a program share."""

from __future__ import annotations

from traindx_tools.finding import Location

SOURCE = "torch probe: course"


def at_line(line: str | None, step: int, rank: int = 0) -> Location:
    """`file:12` of a fact as the place of a finding."""
    file, _, number = (line or "").rpartition(":")
    if not file or not number.isdigit():
        return Location(step=float(step), rank=rank)
    return Location(file=file, line=int(number), step=float(step), rank=rank)
