"""The step waits for its batch: the loader is slower than the training.

Measured inside the DataLoader: the time until it hands out a batch, against the time of the whole step. Workers that
keep up cost next to nothing here, whatever their own work takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SHARE, STEPS, SECONDS = 0.3, 20, 2e-3

RULE = Rule(
    id="T851",
    name="waiting-for-data",
    title="Steps wait for their batch",
    severity=Severity.MEDIUM,
    sees="seconds in the DataLoader and seconds a step, by host clock, after the first ten steps",
    matters="the device stands idle for that share of the run",
    alike=("the first batch of each epoch, which starts the workers: `persistent_workers=True`",
           "a device that is the slower part: the loader then waits, not the step"),
    confirm=("train on one batch kept in memory: the step falls to its compute time",
             "more workers: the wait falls"),
    thresholds={
        "share": Threshold(SHARE, "of the step, median", "a third of the run is lost; below a tenth nothing is gained"),
        "wait": Threshold(SECONDS, "s a batch", "less is the price of handing out a tensor in a tiny model"),
    },
)


def check(steps: Sequence[int], seconds: Sequence[float], waits: Sequence[float], source: str,
          rank: int) -> Iterator[Finding]:
    """Host times by step, equally long. Nothing where there are fewer than 20 steps."""
    if len(steps) < STEPS or not float(np.sum(waits)):
        return
    share = float(np.sum(waits) / np.sum(seconds))
    median = float(np.median(waits))
    if share < SHARE or float(np.mean(waits)) < SECONDS or float(np.median(np.divide(waits, seconds))) < SHARE / 2:
        return
    yield RULE.finding(
        f"{share:.0%} of the time of steps {steps[0]} to {steps[-1]} is spent waiting for the DataLoader (median "
        f"{1000 * median:.1f} ms of {1000 * float(np.median(seconds)):.1f} ms a step)",
        Location(step=int(steps[0]), end_step=int(steps[-1]), rank=rank), source, bearing=Bearing.CAUSE,
        measured={"share": round(share, 3), "wait_ms": round(1000 * median, 2),
                  "step_ms": round(1000 * float(np.median(seconds)), 2)})
