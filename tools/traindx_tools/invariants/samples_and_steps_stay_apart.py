"""What is normalised sums to 1 over its own classes or elements, and samples do not mix.

A linear layer puts classes on the last axis. A softmax over `dim=0` of (batch, classes) makes the samples of a batch
compete for each class; over axis 1 of (batch, time, classes) the steps of a sequence do. Over an axis of one entry
every weight is exactly 1, whatever the scores are, and the layer that makes them is never trained. A mean over axis 0
in the middle of a forward pass gives every row the same mixture of all samples. No shape is wrong in any of these, and
the loss falls to a level that has nothing to do with how often the prediction is right.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment
from traindx_tools.program.uses import AxisUse

RULES = pages("axes", ("C134", "C230", "C350"))


def check(program: Program) -> Iterator[Breach]:
    """Look at every axis that an operation makes a whole of; once for each place."""
    told: set[tuple[str, str]] = set()
    for use in program.axis_uses:
        for breach in _breaches(use):
            key = "C134" if breach.id == "C350" else breach.id, str(breach.at)
            if key not in told:
                told.add(key)
                yield breach


def _breaches(use: AxisUse) -> Iterator[Breach]:
    if use.operation == "pooled":
        yield _breach("C134", use, f"The input of {use.text} was summed or averaged over dim 0 (at {use.at}), the "
                      "batch: samples are mixed", "pooled", "pool over time")
    elif use.role == "elsewhere":
        yield _breach("C350", use, f"{use.operation} at {use.at} runs over axis {use.axis} of {use.shape}, and "
                      f"{use.text} takes axis {use.features} for the one that is whole ({use.asked})", "elsewhere")
    elif use.role == "columns":
        yield _breach("C350", use, f"{use.text} at {use.at} is a statistic over the columns of each row, which are "
                      f"different quantities (shape {use.shape}): a scale is one column's, over the rows", "columns")
    elif use.role == "samples":
        yield _breach("C134", use, f"{use.asked} without batch_first takes axis 0 for steps, and {use.text} at "
                      f"{use.at} gives it samples there (shape {use.shape}): samples see each other", "samples")
    elif not use.of_layer:
        return
    elif use.role == "features" and use.size == 1:
        yield _breach("C230", use, f"{use.text} at {use.at} normalises over the last axis, which has one entry: the "
                      "scores come from a layer with one output, so every weight is exactly 1", "one")
    elif use.role in ("batch", "time") and use.is_sequence and use.features not in (1, 2):
        if use.operation == "log_softmax" or use.in_loss:
            yield _breach("C350", use, f"{use.text} at {use.at} normalises over axis {use.axis}, the {use.role}, of an "
                          "output of a linear layer for every step of a sequence (the classes are its last axis)",
                          use.role, "classes", Known.DERIVED if use.in_loss else Known.GUESSED)
    elif use.role == "batch" and use.features is not None and use.features > 1:
        yield _breach("C134", use, f"{use.text} at {use.at} normalises over dim 0, the batch, of an output of shape "
                      "(batch, classes)", "softmax", "classes")


def _breach(rule: str, use: AxisUse, why: str, kind: str, remedy: str = "", known: Known = Known.DERIVED) -> Breach:
    return Breach(rule, why, use.at, known, {"kind": kind, "axis": use.axis, "operation": use.operation}, remedy=Remedy(
        remedy, Act(Moment.FORWARD, use.at, origin=use.origin)) if remedy else None)
