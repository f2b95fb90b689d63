"""The step waits for its batch: the loader is slower than the training.

Measured inside the DataLoader: the time until it hands out a batch, against the time of the whole step. Workers that
keep up cost next to nothing here, whatever their own work takes.

It costs time and changes no number, so it is a remark (LOW) and never what is wrong with a run, unless a person says
that the run is slow. Without an accelerator the same cores load and compute, and nothing is said to stand idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SHARE, STEPS, SECONDS, USUAL = 0.3, 20, 2e-3, 5e-3

RULE = Rule(
    id="T851",
    name="waiting-for-data",
    title="Steps wait for their batch",
    severity=Severity.LOW,
    sees="seconds in the DataLoader and seconds a step, by host clock, after the first ten steps",
    matters="that share of the run is spent on no step",
    alike=("the first batch of each epoch, which starts the workers: `persistent_workers=True`",
           "a device that is the slower part: the loader then waits, not the step"),
    confirm=("train on one batch kept in memory: the step falls to its compute time",
             "more workers: the wait falls"),
    thresholds={
        "share": Threshold(SHARE, "of the step, median", "a third of the run is lost; below a tenth nothing is gained"),
        "wait": Threshold(SECONDS, "s a batch", "less is the price of handing out a tensor in a tiny model"),
        "usual": Threshold(USUAL, "s, the median step at least", "of a shorter one jitter is a large part"),
    },
)


def check(steps: Sequence[int], seconds: Sequence[float], waits: Sequence[float], source: str,
          rank: int, on_device: bool = False) -> Iterator[Finding]:
    """Host times by step, equally long. Nothing where there are fewer than 20 steps.

    `on_device`: whether an accelerator computes, which the wait keeps idle.
    """
    if len(steps) < STEPS or not float(np.sum(waits)):
        return
    share = float(np.sum(waits) / np.sum(seconds))
    median = float(np.median(waits))
    usual = float(np.median(seconds))
    if usual < USUAL or share < SHARE or float(np.mean(waits)) < SECONDS:
        return
    if float(np.median(np.divide(waits, seconds))) < SHARE / 2:
        return
    idle = ": the accelerator idles" if on_device else ""
    yield RULE.finding(
        f"{share:.0%} of the time of steps {steps[0]} to {steps[-1]} is spent waiting for the DataLoader (median "
        f"{1000 * median:.1f} ms of {1000 * usual:.1f} ms a step){idle}",
        Location(step=int(steps[0]), end_step=int(steps[-1]), rank=rank), source, bearing=Bearing.CAUSE,
        measured={"share": round(share, 3), "wait_ms": round(1000 * median, 2),
                  "step_ms": round(1000 * usual, 2), "on_device": on_device})
