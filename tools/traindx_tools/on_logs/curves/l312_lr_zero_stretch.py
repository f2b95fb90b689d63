"""The learning rate is exactly 0 for a stretch of the run, and then it is not.

Steps at a rate of 0 change nothing. A warm-up begins at 0 and leaves it with the next step; a rate that stays there for
many and then stands at its full height was computed by a formula that is 0 on the way: an integer division
(`step // warmup`), a factor that is rounded, a schedule that waits for something. A rate that is printed with few
decimals reads 0 while it is small: left alone where it climbs out of the last printed place. So is a rate that comes
down to 0 and starts again (cycles), and one that ends there, which L301 judges.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.schedules import learning_rates
from traindx_tools.on_logs.curves.shapes import Track, number, printed_unit, ratio, runs_of
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

ENOUGH, SHARE, HIGH, CLEAR = 3, 0.01, 0.5, 20.0

RULE = Rule(
    id="L312",
    name="lr-zero-stretch",
    title="The learning rate is 0 for a stretch of the run",
    severity=Severity.MEDIUM,
    sees="records at which the learning rate is exactly 0 before one at which it stands at its height",
    matters="Nothing is learned in that stretch, and what the stretch was for (a warm-up) does not happen.",
    alike=("A warm-up that begins at 0: the next record is above it, and below the peak.",
           "0.0000 printed for a small rate: it climbs out of the last printed place.",
           "A part that is held back on purpose at first: a rate of its own, beside one that is not 0."),
    confirm=("Print the rate at each of the first steps with all its digits.",
             "Evaluate the schedule's function at 0, 1 and half of the warm-up: an integer division gives 0 or 1."),
    thresholds={
        "enough": Threshold(ENOUGH, "records at 0", "one is how a warm-up begins, two how a cycle turns"),
        "share": Threshold(SHARE, "of the run", "less is no loss"),
        "high": Threshold(HIGH, "of the peak, right after", "a ramp would be at its foot"),
        "clear": Threshold(CLEAR, "x the last printed place", "a rate that small would have been printed"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: the longest stretch of the main learning rate."""
    for t in learning_rates(run)[:1]:
        if "/" in t.series.name or not t.y.any():
            return
        stretches = [(a, b) for a, b in runs_of(t.y == 0) if _is_one(t, a, b)]
        if stretches:
            yield _report(t, *max(stretches, key=lambda s: s[1] - s[0]))


def _is_one(t: Track, first: int, last: int) -> bool:
    n, peak = len(t), float(t.y.max())
    if last + 1 >= n or last - first + 1 < max(ENOUGH, SHARE * n):
        return False
    after, unit = float(t.y[last + 1]), printed_unit(t.y) or 0.0
    fell = first > 0 and float(t.y[first - 1]) < HIGH * peak  # it came down to 0: a cycle
    return after >= HIGH * peak and after >= CLEAR * unit and not fell


def _report(t: Track, first: int, last: int) -> Finding:
    s = t.series
    span = ratio(float(t.x[last + 1] - t.x[first]), float(t.x[-1] - t.x[0]))
    return RULE.finding(
        f"the learning rate is exactly 0 from {t.place(first)} to {t.place(last)} ({last - first + 1} records, "
        f"{100 * span:.0f} % of the run) and {number(float(t.y[last + 1]))} at {t.place(last + 1)}", t.at(first, last),
        s.source, bearing=Bearing.SIGN,
        measured={"onset": "from-start" if first == 0 else "later", "records": last - first + 1, "share": span,
                  "after": float(t.y[last + 1]), "peak": float(np.max(t.y)),
                  "position": float(s.position[t.index[first]])})
