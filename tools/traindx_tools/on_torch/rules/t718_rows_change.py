"""A row of the dataset is another one at each visit: its values grow or shrink, or its label is drawn anew.

The sampler says which row a batch holds, so that its visits can be compared. Augmentation changes values at random, up
and down; a normalisation that is done in place, on the array that the dataset keeps, changes them each time in the same
way. `kind`: "scaled-each-visit" for that; "labels-redrawn" where the same values come with another label at each visit,
as often as independent draws would: the pairing of inputs and labels is lost anew in each epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.rows import SOURCE, ModelRows
from traindx_tools.rows import visits
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="T718",
    name="rows-change",
    title="The rows of the dataset change from visit to visit",
    severity=Severity.HIGH,
    sees="spread and label of each training row at its first, second, third, fifth ... visit",
    matters="later epochs train on other data than the first one, and evaluation sees the last of them",
    alike=("augmentation: up and down at random", "pseudo-labels: they settle", "labels of a task that is made from "
           "the input anew (rotations): the values change with them"),
    confirm=("a = dataset[0][0].clone(); b = dataset[0][0]; print((a - b).abs().max())",),
    thresholds={
        "times": Threshold(visits.TIMES, "times the spread of the first visit", "augmentation makes less"),
        "alike": Threshold(visits.ALIKE, "of the rows", "move one way, at each visit"),
        "redrawn": Threshold(visits.REDRAWN, "of what independent draws would change", "noise makes less"),
    },
)


def check(seen: ModelRows) -> Iterator[Finding]:
    """At most one finding of each kind."""
    rows = seen.trained_rows
    for change in visits.changes(rows) if rows is not None else ():
        of = f" of {seen.dataset}" if seen.dataset else ""
        if change.kind == "scaled-each-visit":
            text = (f"the values of {change.rows} rows{of} have {change.ratio:.4g} times the spread of their first "
                    f"visit at visit {change.visit}, after a change one way at each visit")
        else:
            text = (f"{change.ratio:.0%} of the visits at which a row{of} has the same values come with another label "
                    f"than its first visit ({change.rows} rows; independent draws would give {change.expected:.0%})")
        yield RULE.finding(
            text, seen.where, SOURCE,
            bearing=Bearing.CAUSE if change.kind == "scaled-each-visit" else Bearing.SIGN,
            measured={"kind": change.kind, "ratio": change.ratio, "visit": change.visit, "rows": change.rows})
