"""Entries that were stored hold the same array, and it is written to after they were stored.

An environment hands out its own state array and changes it in place; a buffer is filled anew for each batch and
appended each time. Every entry then holds the latest values: states equal their next states, all predictions are the
last ones. A copy at the time of storing keeps them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_variables.filling import line_that_fills
from traindx_tools.on_variables.stored import IN_ENTRIES, Stored
from traindx_tools.rules import Rule, Threshold

SOURCE = "variables of the running program"
FEWEST = 16
LEAST_SHARE = 0.25

RULE = Rule(
    id="V101",
    name="stored-items-change",
    title="Stored entries are one array that changes later",
    severity=Severity.HIGH,
    sees="where the arrays of stored entries lie in memory, and whether an array that several entries hold changes",
    matters="what is sampled or averaged later is not what was stored: transitions with equal states, repeated rows",
    alike=("a constant that all entries share: it never changes", "a window over one array: each entry lies elsewhere",
           "a list of fixed length whose arrays are updated in place (averages, memory banks): nothing is added to it"),
    confirm=("print(a is b) for two entries, or np.shares_memory(a, b)",
             "Store copies (`.copy()`, `.clone()`) and run again."),
    thresholds={"in_entries": Threshold(IN_ENTRIES, "entries that hold one array", "a frame is the next state of one "
                                        "step and the state of another: two parts, once each"),
                "share": Threshold(LEAST_SHARE, "of the entries", "fewer are a remainder: the last entry of a page")},
)


def check(seen: Sequence[Stored], rank: int = 0) -> Iterator[Finding]:
    """One finding for each history."""
    told = set()
    for s in sorted(seen, key=lambda s: -s.shared / max(1, s.entries)):
        if s.entries < FEWEST or s.shared < LEAST_SHARE * s.entries or s.place in told:
            continue
        told.add(s.place)
        file, function, path = s.place
        line = line_that_fills(file, function, path)
        if line is None and s.owner is not None:
            file, name = s.owner
            line = line_that_fills(file, "", path, name)
        what = f"`{path}`" + (f" of {function}()" if function else "")
        part = f"part {s.part} of " if s.part else ""
        how = [f"{s.changed} of {s.watched} that were looked at at step {s.first_step} had other values at step "
               f"{s.step}"] * bool(s.changed)
        how += [f"{s.part} and {s.twin} of an entry are the same array"] * bool(s.twin)
        yield RULE.finding(
            f"{what} stores one array again and again: {part}{s.entries} entries lie in {s.arrays} arrays, and "
            f"{', and '.join(how)}: entries hold what was written last, not what was stored",
            Location(file=file, line=line, step=s.first_step, end_step=s.step, rank=rank), SOURCE,
            bearing=Bearing.CAUSE,
            measured={"variable": path, "part": s.part or "the entry", "entries": s.entries, "arrays": s.arrays,
                      "changed": s.changed, "watched": s.watched, "twin": s.twin})
