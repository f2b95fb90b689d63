"""What drops units drops some of them, and only while it trains.

A function of dropout knows nothing of `eval()`: without `training=self.training`, or a condition on it, it drops units
in evaluation and in use too. And the number that dropout is given is the probability to drop: with 1 it gives zeros in
training, so that nothing behind it sees the input and nothing before it gets a gradient (TensorFlow 1 counted the
other way round). A stochastic depth of 1 removes its branch for good.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.entities import Drop
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("modes", ("C144", "C265"))
ALL = 1.0
"""The probability from which on nothing is left: torch's documentation of Dropout, p in [0, 1]."""


def check(program: Program) -> Iterator[Breach]:
    """Look at every place that drops units."""
    for drop in program.drops:
        if drop.in_module and drop.mode in ("default", "forced") and not drop.is_layer and drop.probability != 0:
            yield _in_eval_too(drop)
        if drop.probability == ALL and drop.mode != "never":
            yield _everything(drop)


def _in_eval_too(drop: Drop) -> Breach:
    explicit = drop.mode == "forced"
    return Breach("C144",
        f"{drop.name} at {drop.at} drops units in eval mode too: functional dropout needs training=self.training",
        drop.at, drop.known, {"kind": "dropout", "explicit": explicit}, Severity.LOW if explicit else Severity.MEDIUM,
        None if explicit else Remedy("ask the mode", _act(drop)))


def _everything(drop: Drop) -> Breach:
    known = drop.known if drop.fixed else Known.GUESSED
    default = "" if drop.fixed else " (a default that may be overridden)"
    return Breach("C265",
        f"{drop.name} at {drop.at} drops with probability 1{default}: in training it gives nothing but zeros", drop.at,
        known, {"kind": "all", "probability": 1.0}, Severity.HIGH if drop.fixed else Severity.MEDIUM)


def _act(drop: Drop) -> Act:
    return Act(Moment.FORWARD, drop.at, drop.name, origin=drop.origin)
