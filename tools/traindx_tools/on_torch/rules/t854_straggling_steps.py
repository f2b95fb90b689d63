"""Single steps take many times as long as the others.

At a fixed interval: a checkpoint, an evaluation, a log that reads many values. At random: the file system, a garbage
collection, another process, a data worker that met a large sample. Reported where it costs a noticeable share, and a
second in all: a loop of a few milliseconds a step is jolted by anything else that the machine does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

FACTOR, SHARE, STEPS, LEAST, USUAL, LOST, SINGLE = 5.0, 0.2, 50, 3, 10e-3, 1.0, 0.1

RULE = Rule(
    id="T854",
    name="straggling-steps",
    title="Single steps take many times as long as the others",
    severity=Severity.LOW,
    sees="host seconds a step after the first ten",
    matters="the share of time that these steps take beyond the usual one",
    alike=("evaluation and checkpoints at an interval: planned, and reported as a remark",),
    confirm=("log the time of each step with what it did besides training",),
    thresholds={
        "slow": Threshold(FACTOR, "x the median step", "beyond the jitter of a shared machine"),
        "share": Threshold(SHARE, "of the run's time", "a fifth is worth a look"),
        "usual": Threshold(USUAL, "seconds, the median step at least",
                           "a time slice of another process is some ms: below, it alone is a factor of 5"),
        "single": Threshold(SINGLE, "of the steps at most", "more, at no interval, are another kind of step or a "
                                                            "machine that is shared, and no single ones"),
        "lost": Threshold(LOST, "seconds lost at least", "less is no matter of a training run"),
        "steps": Threshold(STEPS, "steps", "three slow ones among fewer are a chance"),
    },
)


def check(steps: Sequence[int], seconds: Sequence[float], source: str, rank: int) -> Iterator[Finding]:
    """Host times by step. Steps at a constant interval are a remark (INFO), irregular ones a LOW finding."""
    if len(steps) < STEPS:
        return
    took, median = np.asarray(seconds), float(np.median(seconds))
    slow = np.flatnonzero(took > FACTOR * median)
    seconds_lost = float((took[slow] - median).sum())
    lost = seconds_lost / float(took.sum()) if len(slow) else 0.0
    if median < USUAL or len(slow) < LEAST or lost < SHARE or seconds_lost < LOST:
        return
    at = [int(steps[i]) for i in slow.tolist()]
    gaps = np.diff(at)
    regular = bool(len(gaps) and gaps.min() == gaps.max() and gaps[0] > 1)
    if not regular and len(slow) > SINGLE * len(steps):
        return
    when = f"every {gaps[0]} steps" if regular else f"at steps {', '.join(map(str, at[:5]))}" + (
        " ..." if len(at) > 5 else "")
    yield RULE.finding(
        f"{len(slow)} of {len(steps)} steps take more than {FACTOR:g} times the median of {1000 * median:.1f} ms, "
        f"{when}: {lost:.0%} of the time", Location(step=at[0], end_step=at[-1], rank=rank), source,
        bearing=Bearing.CAUSE, severity=Severity.INFO if regular else None,
        measured={"steps": len(slow), "share": round(lost, 3), "regular": regular})
