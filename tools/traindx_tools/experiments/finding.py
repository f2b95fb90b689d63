"""An experiment as a finding: the verdict in one sentence, with where the change took hold and what was measured."""

from __future__ import annotations

import math
import re

from traindx_tools.experiments.experiment import Result
from traindx_tools.experiments.verdict import SAID
from traindx_tools.finding import Bearing, Finding, Location, Value
from traindx_tools.rules import Rule, rules_in

ROOM = "traindx_tools.experiments.rules"
_PLACE = re.compile(r"(?P<file>[^\s:]+\.\w+):(?P<line>\d+)")


def finding_of(result: Result) -> Finding:
    """The finding of an experiment: X101 to X104, by its verdict."""
    return next(f for module in rules_in(ROOM) for f in module.check(result))


def found(rule: Rule, result: Result, bearing: Bearing) -> Finding:
    """A finding of this rule about an experiment."""
    verdict = result.verdict
    measured: dict[str, Value] = {
        "experiment": result.id, "change": str(result.design.change), "outcome": str(result.design.outcome),
        "verdict": verdict.word, "controls": verdict.controls, "changes": verdict.changes, "effect": verdict.effect,
        "low": verdict.low, "high": verdict.high, "spread": verdict.spread, "applied": result.applied.times,
        "better": verdict.better}
    return rule.finding(sentence(result), where(result), f"experiment {result.id}", bearing=bearing,
                        measured={k: v for k, v in measured.items() if v is not None})


def sentence(result: Result) -> str:
    """The verdict in one sentence."""
    return f"{result.id}: {result.design.change} {_verb(result)}: {result.verdict.why}"


def _verb(result: Result) -> str:
    return "is inconclusive" if not result.verdict.decided else SAID[result.verdict.word]


def where(result: Result) -> Location:
    """Where the change took hold, as far as that is a line, and the steps that were compared."""
    at = result.verdict.at
    step = at if at is not None and math.isfinite(at) and result.verdict.unit == "step" else None
    place = _PLACE.search(result.applied.where)
    if place is not None:
        return Location(file=place["file"], line=int(place["line"]), step=step)
    return Location(step=step) if step is not None else Location(module=f"experiment {result.id}")
