"""A model's table was filled row by row from a file whose rows have other names than the program gives the numbers.

Vectors of words, features of items, embeddings of classes: the file names its rows, the program numbers the names by
another list, and the table was copied as it lies. Every lookup then finds a stranger's row, and nothing fails. What the
table held near the start of the run is compared with the file both ways, by place and by name
(`numbered_rows.named_otherwise`): a table that was put in order by its names says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.view import View
from traindx_tools.on_variables.numbered import FEWEST, Numbered
from traindx_tools.rules import Rule, Threshold

ALIKE = 0.995
KNOWN = 0.5
OTHERWISE = 0.2
SOURCE = "variables of the running program, and the files that it read"

RULE = Rule(
    id="D176",
    name="rows-of-other-names",
    title="A table holds a file's rows under other names than the file gives them",
    severity=Severity.HIGH,
    sees="rows of tables in the running model, the program's numbering of names, and files that name such rows",
    matters="Each lookup finds the row of another name: pretrained vectors are noise, and nothing fails.",
    alike=("A table that was filled by name: its rows are the file's by name, and nothing is said.",
           "A numbering that has nothing to do with the table: one that agrees with the file is enough.",
           "Rows for padding and unknown names before the others: they are left out."),
    confirm=("Print the row of one name in the table and in the file.",
             "Fill the table by name in a copy, train, and compare."),
    thresholds={"alike": Threshold(ALIKE, "correlation of a column", "above what a few steps of training leave"),
                "known": Threshold(KNOWN, "share of the names", "that the file has to know"),
                "otherwise": Threshold(OTHERWISE, "share of the rows", "that have to have another name"),
                "rows": Threshold(FEWEST, "rows", "from which a column's correlation says that it is the same")},
)


def check(view: View) -> Iterator[Finding]:
    """Nothing: what the program numbers is the run's to say, and `numbered_rows.named_otherwise` asks it."""
    return iter(())


def finding_of(held: Numbered, file: str, names: Sequence[str], shift: int) -> Finding:
    """`names`: what the file calls the row at each place of `held.rows`; `shift`: rows of the table before those."""
    other = [k for k, (ours, theirs) in enumerate(zip(held.names, names, strict=True)) if ours != theirs]
    k = other[len(other) // 2]
    before = f" (which begins with {shift} rows of its own)" if shift else ""
    same = len(names) - len(other)
    return RULE.finding(
        f"row {held.rows[k]} of {held.table}{before} is what {os.path.basename(file)} holds for {names[k]!r}, while "
        f"{held.numbering} gives {held.rows[k]} to {held.names[k]!r}; of {len(names)} rows that were compared {same} "
        f"have the same name in both",
        Location(file=file), SOURCE, bearing=Bearing.CAUSE,
        measured={"table": held.table, "numbering": held.numbering, "compared": len(names), "same": same,
                  "row": held.rows[k], "held": names[k], "given": held.names[k], "shift": shift})
