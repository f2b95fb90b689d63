"""The reward does not rise, or falls back after it had risen.

Rewards are noisy, so a flat one is only claimed where the noise allows it: over twelve records and more, the levels of
first and last third differ by less than half the record-to-record scatter and by less than two standard errors, and
there is no trend (Mann-Kendall |z| < 2). A reward that sits at its upper bound is solved, not flat.

"flat": it never moved. "collapsed": it rose by four standard errors and has lost half or more of that rise at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, block_means, curve, noise, spread, trend
from traindx_tools.on_logs.curves.learning import is_preference, is_reinforcement, number, span
from traindx_tools.on_logs.run import Floats, Run
from traindx_tools.rules import Rule, Threshold

RECORDS = 12
SCATTER = 0.5
TREND = 2.0
LOST = 0.5
ERRORS = 4.0
ROSE = 3.0
"""Times its usual level, from which on a KL counts as risen."""

RULE = Rule(
    id="L604",
    name="reward-flat",
    title="The reward does not rise",
    severity=Severity.MEDIUM,
    sees="the mean reward over the log",
    matters="The policy does not improve; everything else in the log is activity without effect.",
    alike=(
        "A sparse reward that is first found late: it is 0 until then.",
        "A solved task: the reward is at its bound.",
        "Slow progress below the noise: a longer log shows it.",
    ),
    confirm=(
        "Compare parameters before and after ten updates.",
        "Print rewards and advantages of one group: do they differ, and does the better answer get the higher "
        "advantage?",
    ),
    thresholds={
        "records": Threshold(RECORDS, "records", "four in each third"),
        "scatter": Threshold(SCATTER, "of record-to-record scatter", "between first and last third"),
        "trend": Threshold(TREND, "Mann-Kendall z", "5 % by chance"),
        "lost": Threshold(LOST, "of the rise", "half"),
        "errors": Threshold(ERRORS, "standard errors", "a rise that is certain"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding for the training reward; none where a held-out reward rises."""
    series = run.first("reward", group="train")
    if series is None or not is_reinforcement(run) or is_preference(run):
        return
    held_out = [curve(s) for g in ("validation", "test") for s in run.find("reward", group=g)]
    if any(len(c) >= 4 and trend(c.values) > TREND for c in held_out):
        return
    c = curve(series)
    if len(c) >= RECORDS:
        yield from (replace(f, measured={**f.measured, "kl": _kl(run)}) for f in _judge(c))


def _kl(run: Run) -> str | None:
    """ "calm" where a KL is logged and did not rise, "rises" where it did, None where none is logged."""
    kl = run.first("kl", group="train")
    values = np.abs(curve(kl).values) if kl is not None else np.zeros(0)
    if len(values) < RECORDS:
        return None
    return "rises" if float(values[-3:].max()) > ROSE * float(np.median(values[: 2 * len(values) // 3])) else "calm"


def _judge(c: Curve) -> Iterator[Finding]:
    v = c.values
    scatter = max(noise(v), 1e-12)
    third = len(v) // 3
    start, end = float(v[:third].mean()), float(v[-third:].mean())
    error = scatter * math.sqrt(2.0 / third)
    blocks = block_means(v, min(12, len(v) // 2))
    peak = int(np.argmax(blocks))
    rise = float(blocks[peak]) - float(blocks[: peak + 1].min())
    lost = float(blocks[peak]) - float(np.mean(blocks[-2:]))
    block_error = scatter / math.sqrt(len(v) / len(blocks))
    if rise > ERRORS * block_error * 1.5 and lost >= LOST * rise and lost > ERRORS * block_error * 1.5 and (
            peak <= len(blocks) - 4 and trend(v) < TREND):
        yield _finding(c, "collapsed", float(blocks[peak]), float(np.mean(blocks[-2:])), scatter, Severity.HIGH)
        return
    flat = abs(end - start) <= min(SCATTER * scatter, 2.0 * error) or spread(v) == 0.0
    if flat and abs(trend(v)) < TREND and not _solved(v):
        yield _finding(c, "flat", start, end, scatter, Severity.MEDIUM)


def _solved(values: Floats) -> bool:
    """A level at the upper bound of a reward between 0 and 1 (or -1 and 1)."""
    top = float(values.max())
    return 0.9 <= top <= 1.0 and float(np.median(values)) >= 0.9


def _finding(c: Curve, kind: str, before: float, after: float, scatter: float, severity: Severity) -> Finding:
    start, end = c.where(0, len(c) - 1)
    words = f"does not rise: {number(before)} in the first third, {number(after)} in the last" if kind == "flat" else (
        f"rose to {number(before)} and fell back to {number(after)}")
    return RULE.finding(
        f"{c.series.original} {words} {span(c.series, start, end)} ({len(c)} records, scatter {number(scatter)})",
        c.series.at(start, end), c.series.source, bearing=Bearing.COMPANION, severity=severity,
        measured={"kind": kind, "before": before, "after": after, "scatter": scatter, "trend_z": trend(c.values),
                  "records": len(c)},
    )
