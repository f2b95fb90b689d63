"""The learning rate is multiplied by a constant every step and is gone long before the run ends.

A straight line in the logarithm of the rate against the step. Exponential schedules draw it on purpose, over the whole
run and two or three decades. Here the rate loses three decades in less than 40 % of the run and goes on, so that
the rest trains with nothing: a factor meant for once (layer-wise decay, one decay an epoch) is applied at every step,
or to the current value instead of the initial one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.schedules import learning_rates, plan
from traindx_tools.on_logs.curves.shapes import Track, line_fit, ratio
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

STRAIGHT = 0.98
FAST = 0.4
DECADES = 4.0

RULE = Rule(
    id="L303",
    name="lr-geometric-decay",
    title="The learning rate decays geometrically, far too fast",
    severity=Severity.HIGH,
    sees="The factor by which the learning rate is multiplied a step, the span over which it holds, and what is left.",
    matters="After three decades the updates are too small to change anything; the rest of the run is wasted.",
    alike=("An exponential schedule over the whole run, two or three decades in all.",
           "A linear or cosine decay that ends early: L306.", "Steps by ReduceLROnPlateau: flat in between."),
    confirm=("Search the training loop for a multiplication of param_group['lr'] by itself.",
             "Check whether scheduler.step() stands in the batch loop with a gamma that is meant for an epoch."),
    thresholds={
        "straight": Threshold(STRAIGHT, "R^2 of log(rate) against the step", "stairs of a step schedule included"),
        "fast": Threshold(FAST, "of the run for three decades", "most of the run trains at under 0.1 % of it"),
        "decades": Threshold(DECADES, "decades in all", "exponential schedules in use end at 1e-2 to 1e-3 of the peak"),
    },
)


@dataclass(frozen=True)
class Ladder:
    """A geometric decay from index `start` to `end`; `rate` is the factor per unit of position."""

    start: int
    end: int
    rate: float
    fit: float


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    for t in learning_rates(run):
        ladder, where = _ladder(t), plan(run, t)
        if ladder is None or where is None:
            continue
        for_three = ratio(np.log(1e-3), np.log(ladder.rate))
        if for_three > FAST * where.end:
            continue
        yield _report(t, ladder, for_three, where.end)
        return


def _ladder(t: Track) -> Ladder | None:
    peak = float(t.y.max())
    if peak <= 0:
        return None
    start = int(np.flatnonzero(t.y >= peak * (1 - 1e-3))[-1])
    positive = np.flatnonzero(t.y[start:] > 0)
    end = start + int(positive[-1])
    falling = np.diff(t.y[start: end + 1])
    if end - start < 4 or (falling > 1e-3 * peak).any() or int((falling < 0).sum()) < min(5, len(falling)):
        return None
    stop = _floor_start(t.y, start, end)
    x, logs = t.x[start: stop + 1], np.log(t.y[start: stop + 1])
    if stop - start < 4 or (logs[0] - logs[-1]) / np.log(10) < DECADES:
        return None
    slope, _, fit = line_fit(x, logs)
    rate = float(np.exp(max(slope, -700.0)))
    return Ladder(start, stop, rate, fit) if fit >= STRAIGHT and 0 < rate < 1 - 1e-9 else None


def _floor_start(y: np.ndarray[tuple[int, ...], np.dtype[np.float64]], start: int, end: int) -> int:
    """Index of the first of the equal values in which the curve ends (a minimum rate, or the smallest number)."""
    moving = np.flatnonzero(y[start: end + 1] > y[end] * (1 + 1e-9))
    return start + int(moving[-1]) + 1 if len(moving) and start + int(moving[-1]) < end - 1 else end


def _report(t: Track, ladder: Ladder, for_three: float, planned: float) -> Finding:
    s = t.series
    a, b = ladder.start, ladder.end
    exact = ladder.fit > 0.9999
    rate = f"{ladder.rate:.4g}" if ladder.rate < 0.999 else f"{ladder.rate:.6g}"
    return RULE.finding(
        f"the learning rate is multiplied by {rate} every {t.unit} from {t.place(a)} on: {t.y[a]:.3g} at {t.place(a)}, "
        f"{t.y[b]:.3g} at {t.place(b)}; it loses three decades every {for_three:.3g} {t.unit}s of {planned:.10g}",
        t.at(a, b), s.source, bearing=Bearing.CAUSE if exact and t.unit != "record" else Bearing.SIGN,
        measured={"ratio": ladder.rate, "unit": t.unit, "first": float(t.y[a]), "last": float(t.y[b]),
                  "position": float(s.position[t.index[a]]), "end_position": float(s.position[t.index[b]]),
                  "decades": float(np.log10(t.y[a]) - np.log10(t.y[b])), "three_decades_in": for_three,
                  "fit": ladder.fit, "planned": planned, "flat": _flat(t, ladder)})


def _flat(t: Track, ladder: Ladder) -> float:
    """The share of the records between which the rate stays: none for a factor of each step, half for one of two."""
    moves = np.diff(t.y[ladder.start : ladder.end + 1])
    return float((moves == 0).mean())
