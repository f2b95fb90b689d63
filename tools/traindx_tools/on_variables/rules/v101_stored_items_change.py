"""Entries that were stored hold the same array, and it is written to after they were stored.

An environment hands out its own state array and changes it in place; a buffer is filled anew for each batch and
appended each time. Every entry then holds the latest values: states equal their next states, all predictions are the
last ones. A copy at the time of storing keeps them apart. Where the memory is one array for each part, a state that was
changed before it was written shows as two arrays with the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_variables.equal import Equal
from traindx_tools.on_variables.filling import line_that_fills
from traindx_tools.on_variables.look import Place
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


def check(seen: Sequence[Stored], equal: Sequence[Equal] = (), rank: int = 0) -> Iterator[Finding]:
    """One finding for each history and for each pair of arrays; `kind`: "references" or "equal-arrays"."""
    yield from _references(seen, rank)
    for e in equal[:3]:
        (_, function, path), other = e.one, e.other[2]
        what = f"`{path}` and `{other}`" + (f" of {function}()" if function else "")
        yield RULE.finding(
            f"{what} are two arrays that the program fills, and all {e.rows} rows of the one are those of the other "
            f"({e.distinct} different ones), at step {e.first_step} and, written to since, at step {e.step}: what "
            f"is stored into the second was already, or is by now, what is stored into the first",
            _where(e.one, e.owner, e.first_step, e.step, rank), SOURCE, bearing=Bearing.CAUSE,
            measured={"kind": "equal-arrays", "variable": path, "twin": other, "entries": e.rows, "arrays": e.distinct})


def _where(place: Place, owner: tuple[str, str] | None, first: int, last: int, rank: int) -> Location:
    """The line that stores: of the variable's own function, else of the class whose attribute it is."""
    file, function, path = place
    line = line_that_fills(file, function, path) if owner is None or function else None
    if line is None and owner is not None:
        file, name = owner
        line = line_that_fills(file, "", path, name)
    return Location(file=file, line=line, step=first, end_step=last, rank=rank)


def _references(seen: Sequence[Stored], rank: int) -> Iterator[Finding]:
    told = set()
    for s in sorted(seen, key=lambda s: -s.shared / max(1, s.entries)):
        if s.entries < FEWEST or s.shared < LEAST_SHARE * s.entries or s.place in told:
            continue
        told.add(s.place)
        _, function, path = s.place
        where = _where(s.place, s.owner, s.first_step, s.step, rank)
        what = f"`{path}`" + (f" of {function}()" if function else "")
        part = f"part {s.part} of " if s.part else ""
        how = [f"{s.changed} of {s.watched} that were looked at at step {s.first_step} had other values at step "
               f"{s.step}"] * bool(s.changed)
        how += [f"{s.part} and {s.twin} of an entry are the same array"] * bool(s.twin)
        yield RULE.finding(
            f"{what} stores one array again and again: {part}{s.entries} entries lie in {s.arrays} arrays, and "
            f"{', and '.join(how)}: entries hold what was written last, not what was stored",
            where, SOURCE, bearing=Bearing.CAUSE,
            measured={"kind": "references", "variable": path, "part": s.part or "the entry", "entries": s.entries,
                      "arrays": s.arrays, "changed": s.changed, "watched": s.watched, "twin": s.twin})
