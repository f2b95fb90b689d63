"""A plateau schedule cuts the rate although what it watches improves.

`ReduceLROnPlateau` compares each value with the best that it holds. Where that best came from elsewhere (the state of
another run, a first value set by hand) nothing that this run reaches is an improvement, and the rate is cut every
`patience` evaluations. `kind`: "loaded" where a state was loaded into the schedule before its first value, "held" where
the best is none of this run's for another reason, "threshold" where the best is this run's and each improvement was
smaller than the schedule's threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.state import SOURCE, At
from traindx_tools.rules import Rule, Threshold

VALUES, IMPROVED, GAIN, FAR = 4, 0.6, 0.05, 0.5

RULE = Rule(
    id="T214",
    name="plateau-unreached",
    title="A plateau schedule cuts the rate although what it watches improves",
    severity=Severity.HIGH,
    sees="the values given to ReduceLROnPlateau, the best that it holds, whether its state was loaded, and its cuts",
    matters="the rate falls every few evaluations while the run goes well, until nothing is learned any more",
    alike=("a run that is resumed: its best is near, and reached again", "values that stand still or get worse",
           "a metric that moves to and fro"),
    confirm=("print(scheduler.best, scheduler.mode, scheduler.threshold, scheduler.num_bad_epochs)",),
    thresholds={"values": Threshold(VALUES, "values that led to cuts", "fewer show no trend"),
                "improved": Threshold(IMPROVED, "of them are better than all before them in this run",
                                      "of a series of n values without a trend about ln(n)/n are"),
                "gain": Threshold(GAIN, "of the value reached, by these together", "less is what a plateau looks like"),
                "far": Threshold(FAR, "of the value reached", "this model may have been there before a resume")},
)


@dataclass(frozen=True)
class Watched:
    """What one plateau schedule was given, up to its last cut. `best`: as it holds it now."""

    values: tuple[float, ...]
    cuts: tuple[int, ...]
    """How many values there were at each cut, ascending."""
    patience: int
    larger: bool
    """Whether larger is better: its `mode` is "max"."""
    best: float
    loaded: bool
    """A state was loaded into it before its first value."""
    at: At


def check(seen: Sequence[Watched]) -> Iterator[Finding]:
    """One finding for each schedule."""
    for one in seen:
        kind = _kind(one)
        if kind is None:
            continue
        first, reached = one.values[0], (max if one.larger else min)(one.values)
        cuts = len(one.cuts)
        yield RULE.finding(
            f"ReduceLROnPlateau cut the rate {cuts} {'time' if cuts == 1 else 'times'} in {len(one.values)} values "
            f"that went from {first:.4g} to {reached:.4g}; before the cuts most were the best so far: "
            f"{_why(kind, one)}", one.at.where(), SOURCE,
            bearing=Bearing.CAUSE if kind == "loaded" else Bearing.SIGN,
            measured={"kind": kind, "cuts": cuts, "values": len(one.values), "first": first, "reached": reached,
                      "best": one.best})


def _kind(one: Watched) -> str | None:
    sign = 1.0 if one.larger else -1.0
    waited = {i for cut in one.cuts for i in range(max(1, cut - one.patience - 1), cut)}
    best, improved, gain = sign * one.values[0], 0, 0.0
    for i, value in enumerate(one.values):
        better = max(0.0, sign * value - best)
        best += better
        if i in waited:
            improved += better > 0
            gain += better
    if len(waited) < VALUES or improved < IMPROVED * len(waited) or gain < GAIN * abs(best):
        return None
    ahead = sign * one.best - best
    if ahead <= 0:
        return "threshold"
    if ahead < FAR * abs(best):
        return None
    return "loaded" if one.loaded else "held"


def _why(kind: str, one: Watched) -> str:
    if kind == "threshold":
        return "each improvement was smaller than its threshold"
    whence = "loaded with its state" if kind == "loaded" else "none of this run's values"
    return f"the best that it compares with is {one.best:.4g}, {whence}, and was never reached"
