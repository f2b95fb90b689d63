"""The learning-rate schedule is not stepped where its construction expects it.

Six ways: stepped per batch although its length counts epochs (it ends after a handful of batches), or as long as one
epoch although there are several (it ends with the first); per epoch although it counts batches (it hardly moves);
before the optimizer (the first value is skipped; torch warns); prepared by accelerate, whose wrapper steps it once for
each process, with a length that counts one process's batches; or built after the optimizer's state was loaded and not
loaded itself (its constructor writes the initial rate back). A rate that is set by hand and multiplied into itself is
C233.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code import schedules
from traindx_tools.on_code.project import Project
from traindx_tools.rules import Rule

RULE = Rule(
    id="C110",
    name="scheduler-misplaced",
    title="The learning-rate schedule is stepped in the wrong place",
    severity=Severity.HIGH,
    sees=(
        "How long a scheduler was built to run, in which loop it is stepped, and what happens around its construction."
    ),
    matters="The learning rate is at its end, or still at its start, for most of training.",
    alike=("a learning rate that is constant on purpose", "a model that has converged"),
    confirm=(
        "plot optimizer.param_groups[0]['lr'] over steps",
        "compare the schedule's length with the number of its steps",
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every scheduler."""
    for fault in schedules.faults(project):
        yield RULE.finding(
            fault.statement,
            fault.where,
            fault.where.file or "",
            bearing=fault.bearing if fault.direct else Bearing.SIGN,
            severity=fault.severity,
            measured={"kind": fault.kind, **fault.measured},
            patch=fault.patch,
        )
