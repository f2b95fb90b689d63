"""The processes of a distributed run leave their training loop together.

Under DistributedDataParallel each backward is a collective. A process that stops early, by the validation loss of its
own share of the data, by the training loss of its own batches or by its own clock, leaves the loop while the others
still wait for its gradients: the job hangs until a timeout. The decision has to be one for all: reduce the metric, or
broadcast the decision of rank 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = pages("ranks", ("C264",))
_WHY = {"metric": "the metric is measured on this rank's own part of the data{on}, so ranks decide differently",
    "clock": "by its own clock",
    "loss": "the criterion is the loss of this rank's own batches, so ranks decide differently",
    "rank": "only the rank that the condition asks for leaves"}


def check(program: Program) -> Iterator[Breach]:
    """Look at the first way out of a distributed loop that the processes do not take together."""
    for one in program.ways_out[:1]:
        guessed = one.kind == "loss"
        yield Breach("C264", f"if {one.test} at {one.at}: every process decides for itself, "
                     f"{_WHY[one.kind].format(on=one.on)}; its peers wait in the gradient all-reduce until the timeout",
                     one.at, Known.GUESSED if guessed else Known.DERIVED, {"kind": one.kind},
                     Severity.HIGH if guessed else None)
