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

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code import schedules
from traindx_tools.on_code.project import Project

(RULE,) = pages("schedules", ("C110",))


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
        )
