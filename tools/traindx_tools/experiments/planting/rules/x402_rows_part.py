"""Whole rows were changed in the data file, and inputs and targets changed in different rows of the batches.

A row that reaches the model whole changes in both. Files whose rows follow each other in time are not judged: a target
may be meant to be that of a later row.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.experiments.planting.judging import FEWEST, NONE
from traindx_tools.experiments.planting.study import Study
from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="X402",
    name="rows-part",
    title="Inputs and targets of the same rows do not reach the model together",
    severity=Severity.HIGH,
    sees="Rows of the batches of two runs: the data file as it is, and with whole rows changed.",
    matters="The model learns targets of other rows: at best the frequencies of the classes.",
    alike=("pairs of different rows on purpose: contrastive learning, the next row as the target",),
    confirm=("print input and target of one row of the file, and of the row of the batch that holds its input",),
    thresholds={
        "both": Threshold(NONE, "of the rows whose target changed", "at most, whose input changed as well"),
        "rows": Threshold(FEWEST, "rows", "whose input changed and whose target changed, each at least"),
    },
)


def check(study: Study) -> Iterator[Finding]:
    """The finding, where inputs and targets part."""
    parted = study.parted
    if parted is None:
        return
    files = ", ".join(parted.table.files)
    said = (f"{parted.planted} whole rows of {files} were changed, nothing else: {parted.inputs} inputs and "
            f"{parted.seen.targets} targets are other ones, and in {parted.seen.both} rows both: inputs and targets of "
            "one row of the file do not arrive together")
    measured: dict[str, Value] = {"planted": parted.planted, "inputs": parted.inputs, "targets": parted.seen.targets,
                                  "both": parted.seen.both}
    yield RULE.finding(said, Location(file=parted.table.files[0]), files, bearing=Bearing.CAUSE, measured=measured)
