"""A value of the target was changed in the data file, and the input of the very row that it is the target of changed.

Nothing else differs between the two runs. Rows that hold the value as a lag of an earlier target change too, and are
others: what counts is the row whose target changed. By chance as many would coincide once in ten thousand times.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.experiments.planting.judging import NEARLY_ALL, RARE
from traindx_tools.experiments.planting.study import Study
from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="X401",
    name="target-reaches-input",
    title="Inputs change with nothing but their own target",
    severity=Severity.HIGH,
    sees="Rows of the batches of two runs: the data file as it is, and with single values of the target changed.",
    matters="Such an input tells the model what it is to predict. Training and validation look good, and where the "
            "target is not known yet, the feature is another one.",
    alike=("a model that completes or denoises its own input: its target is its input on purpose",
           "a teacher's answer or the last label that is known when the prediction is made"),
    confirm=("print the features of one row before and after its target is changed",
             "leave the named features out: validation becomes worse, and agrees with new data"),
    thresholds={
        "chance": Threshold(RARE, "probability", "of so many coincidences, binomial, from the share of other rows"),
        "share": Threshold(NEARLY_ALL, "of the changed targets", "at least, of those that rose and those that fell"),
    },
)
SHOWN = 4


def check(study: Study) -> Iterator[Finding]:
    """The finding, where targets reach their own inputs."""
    reached = study.reached
    if reached is None or not reached.seen.leaks:
        return
    seen, column = reached.seen, reached.column
    names = [n for n in reached.names if not n.startswith("[")]
    which = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    numbers = ", ".join(n[1:-1] for n in reached.names[:SHOWN])
    what = f": {which}" if names else f": columns {numbers} of the input" if reached.names else ""
    said = (f"{reached.planted} values of {column.name or 'the array'} were changed in {column.file}, nothing else: of "
            f"{seen.targets} rows whose target is another one, the input of {seen.both} is another one too{what} "
            f"({seen.base:.1%} of the other rows)")
    where = Location(file=reached.place[0], line=reached.place[1]) if reached.place else Location(file=column.file)
    measured: dict[str, Value] = {
        "file": column.file, "column": column.name, "planted": reached.planted, "targets": seen.targets,
        "both": seen.both, "base": seen.base, "inputs": tuple(reached.names), "feature": which or "the input"}
    yield RULE.finding(said, where, column.name, bearing=Bearing.CAUSE, measured=measured)
