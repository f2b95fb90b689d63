"""The loss steps up at a boundary: where the run was resumed, or at one epoch start, and nowhere else.

A step that falls on a resume says that something of the state did not come back: optimizer moments, the learning rate
schedule, the data order, the running statistics, the averaged weights, or that an older checkpoint was loaded than the
log claims. A step at an epoch start that stays says that something changes there by plan: the learning rate, a stage of
a curriculum, an augmentation, a layer that is unfrozen.

The rule compares up to three records on both sides. A step counts when it exceeds 20 % of the level and four standard
deviations of the record-to-record scatter. At an epoch start it must also be the only one, and last to the end of the
log (a regular saw is L206, a lone outlier L107). Steps down (a lower learning rate, a second pass over the data) are
healthy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, median, noise, ratio, tail
from traindx_tools.on_logs.curves.learning import (
    epoch_numbers,
    is_adversarial,
    is_reinforcement,
    main_loss,
    number,
    place,
)
from traindx_tools.on_logs.run import Floats, Run, Series
from traindx_tools.rules import Rule, Threshold

STEP = 0.2
LASTING_STEP = 0.3
SIGMAS = 4.0
SIDE = 3
RECOVERED = 0.1

RULE = Rule(
    id="L207",
    name="step-at-boundary",
    title="The loss steps up at a resume or an epoch start",
    severity=Severity.HIGH,
    sees="training loss just before and just after a resume or an epoch start, learning rate beside it",
    matters="State was lost, or a planned change broke the training: the steps since then work against those before.",
    alike=(
        "A spike that would have come anyway: it falls on the boundary by chance, elsewhere there are others.",
        "Another part of the data after a resume: the level changes, the learning rate does not.",
    ),
    confirm=(
        "Evaluate the loaded checkpoint before the first step: the loss must equal the one at saving.",
        "Print learning rate, step counter and the optimizer's state size right after loading.",
    ),
    thresholds={
        "step": Threshold(STEP, "relative to the level before", "at a resume"),
        "lasting_step": Threshold(LASTING_STEP, "relative to the level before", "at an epoch start, to the end"),
        "sigmas": Threshold(SIGMAS, "standard deviations", "of record-to-record scatter: 1 in 16,000 by chance"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """Findings at resumes; where there is none, at the one epoch start with a lasting step."""
    series = main_loss(run)
    if series is None or is_adversarial(run) or is_reinforcement(run):
        return
    c = curve(series)
    if len(c) < 4:
        return
    found = False
    for cut in _resumes(run, c):
        finding = _step(run, c, cut, "resume", STEP)
        found = found or finding is not None
        if finding is not None:
            yield finding
    if not found:
        yield from _epoch_step(run, c)


def _resumes(run: Run, c: Curve) -> list[int]:
    """Numbers of the first records after each resume that the log announces."""
    lines = c.series.line[c.index]
    cuts = {int(np.searchsorted(lines, n.line, side="right"))
            for n in run.notes if n.kind == "resume" and n.source == c.series.source}
    return sorted(cut for cut in cuts if 1 <= cut < len(c))[:20]


def _epoch_step(run: Run, c: Curve) -> Iterator[Finding]:
    epochs = epoch_numbers(run, c.series)
    if epochs is None:
        return
    cuts = np.flatnonzero(np.diff(epochs[c.index]) != 0) + 1
    if len(cuts) < 2 or len(c) < SIDE * (len(cuts) + 1):
        return
    steps = [(int(cut), f) for cut in cuts[:2000] if (f := _step(run, c, int(cut), "epoch", LASTING_STEP)) is not None]
    if len(steps) != 1:
        return
    cut, finding = steps[0]
    before = _side(c.values, cut)[0]
    if 2 * SIDE <= cut <= len(c) - 2 * SIDE and float(np.quantile(c.values[cut:], 0.1)) > before * (1.0 + STEP):
        yield finding


def _side(values: Floats, cut: int) -> tuple[float, float]:
    return median(values[max(0, cut - SIDE):cut]), float(values[cut])


def _step(run: Run, c: Curve, cut: int, kind: str, limit: float) -> Finding | None:
    v = c.values
    before, after = _side(v, cut)
    if kind == "epoch":
        after = median(v[cut:cut + SIDE])
    scatter = noise(v[max(0, cut - 8):cut])
    trending = abs(float(v[cut - 1]) - float(v[max(0, cut - SIDE)]))
    if before <= 0.0 or after - before < max(limit * before, SIGMAS * scatter, trending):
        return None
    start, end = c.where(cut - 1, cut)
    end_level = tail(v) if len(v) - cut > 3 else float(v[-1])
    recovered = end_level <= before * (1.0 + RECOVERED)
    rate = _rate(run, c.series, start, end)
    said = f"; the learning rate goes from {number(rate[0])} to {number(rate[1])}" if rate is not None else ""
    what = "where the run was resumed" if kind == "resume" else "at an epoch start, and stays up"
    position = c.series.position
    return RULE.finding(
        f"{c.series} steps up from {number(before)} to {number(after)} ({number(ratio(after, before))} times) "
        f"{place(c.series, end)}, {what}{said}",
        c.series.at(start, end), c.series.source, bearing=Bearing.SIGN,
        severity=Severity.MEDIUM if recovered else Severity.HIGH,
        measured={"kind": kind, "before": before, "after": after, "ratio": ratio(after, before), "recovered": recovered,
                  "of_start": ratio(after, float(v[0])) if v[0] > 0 else None,
                  "at": float(position[end]), "unit": c.series.unit,
                  "steps_back": bool(position[end] <= position[start]),
                  "lr_before": rate[0] if rate else None, "lr_after": rate[1] if rate else None,
                  "lr_ratio": ratio(rate[1], rate[0]) if rate and rate[0] > 0 else None},
    )


def _rate(run: Run, series: Series, start: int, end: int) -> tuple[float, float] | None:
    """The learning rate beside two records of the loss, where it stands in the same source."""
    for lr in run.find("learning_rate"):
        if lr.source == series.source and len(lr) >= 2:
            at = [int(np.argmin(np.abs(lr.line - series.line[i]))) for i in (start, end)]
            before, after = float(lr.values[at[0]]), float(lr.values[at[1]])
            if np.isfinite(before) and np.isfinite(after):
                return before, after
    return None
