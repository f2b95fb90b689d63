"""The same text of a column has one number in the rows of one table and another in those of another.

Names get their numbers in the order in which they occur, or are sorted, in the rows at hand: a table that lacks a
class, a branch or a word gives other numbers to all that follow. The model learned one numbering and is asked by the
other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_variables.value_numbers import EACH, FEWEST_COMMON, FEWEST_ROWS, Clash
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="V106",
    name="numbered-apart",
    title="The values of a column have other numbers in another table",
    severity=Severity.HIGH,
    sees="texts of the columns of CSV tables that the program read, and arrays of whole numbers with as many rows, in "
         "which each text has one number of its own",
    matters="embeddings and outputs mean one numbering, and rows of the other table come with another",
    alike=("tables that each have a model of their own", "a table of which rows were dropped: it is not known again"),
    confirm=("print(dict(zip(a.column, a_codes)), dict(zip(b.column, b_codes)))",),
    thresholds={
        "common": Threshold(FEWEST_COMMON, "texts that both tables have", "fewer are no column of the same kind"),
        "rows": Threshold(FEWEST_ROWS, "rows of a table", "fewer show no relation"),
        "each": Threshold(EACH, "rows of a text on average", "names of rows are no kinds"),
    },
)


def check(seen: Iterable[Clash], rank: int = 0) -> Iterator[Finding]:
    """One finding for each pair of tables, with all their columns."""
    pairs: dict[tuple[str, str], list[Clash]] = {}
    for clash in seen:
        pairs.setdefault((clash.one.path, clash.other.path), []).append(clash)
    for clashes in pairs.values():
        first = clashes[0]
        one, other = os.path.basename(first.one.path), os.path.basename(first.other.path)
        columns = list(dict.fromkeys(c.column for c in clashes))
        text, mine, theirs = first.differ[0]
        yield RULE.finding(
            f"the codes of {', '.join(columns[:5])} were made separately for each file: {len(first.differ)} of "
            f"{first.common} values of {first.column} that {one} and {other} share have another number in {one} "
            f"({text!r} is {mine} there and {theirs} in {other})",
            Location(file=first.one.file or None, line=first.one.line or None, rank=rank),
            "variables of the running program", bearing=Bearing.CAUSE,
            measured={"columns": tuple(columns), "differ": len(first.differ), "common": first.common, "table": one,
                      "other": other})
