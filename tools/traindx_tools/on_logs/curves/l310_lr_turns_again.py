"""A schedule that has come down rises again, smoothly, the way it came.

A cosine is a periodic function: evaluated beyond the length it was built for, without a clamp on the progress, it turns
at its minimum and climbs back to the peak. The same happens to a triangle or to a polynomial of even degree, and to a
scheduler with `T_max` smaller than the steps that are taken. The best model is then the one at the turn, and what
follows looks like overfitting although training and validation get worse together.

The rise must mirror the decay: that is what tells it from a second stage with a warm-up of its own, and its smoothness
from a warm restart (L302), which jumps. Schedules that begin low and swing, or that go down more than twice, are cycles
on purpose and are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.curves.schedules import jumps_up, learning_rates, plan
from traindx_tools.on_logs.curves.shapes import Track, number, ratio, track
from traindx_tools.on_logs.run import Floats, Run
from traindx_tools.rules import Rule, Threshold

LOW, BACK, RISING, MIRROR, SWING = 0.5, 0.1, 3, 0.12, 0.8
MOST_MARKS = 3
"""Turning points of a rate that turns once more: it begins low, peaks, falls and climbs."""

RULE = Rule(
    id="L310",
    name="lr-turns-again",
    title="The learning rate rises again after its decay",
    severity=Severity.HIGH,
    sees="The turn of a decayed learning rate, how far it climbs back and whether the climb mirrors the decay.",
    matters="Growing steps late in training undo what the small ones reached; the last model is not the best.",
    alike=("A cyclic schedule (CyclicLR, several cosine periods): it swings on purpose.",
           "Warm restarts: the rate jumps, it does not climb.", "A second stage with a warm-up of its own."),
    confirm=("Print the schedule's length beside the steps of the run: print(T_max, total_steps).",
             "Evaluate the schedule past its end: it must stay at its minimum."),
    thresholds={
        "low": Threshold(LOW, "of the peak", "the rate had decayed by half at least before it turned"),
        "back": Threshold(BACK, "of the peak", "a climb that is no printed digit or noise"),
        "rising": Threshold(RISING, "records on each side of the turn", "fewer show no shape"),
        "mirror": Threshold(MIRROR, "of the fall, mean distance from the mirrored decay", "a re-warming is steeper"),
        "swing": Threshold(SWING, "of the decay's length", "a triangle rises as long as it falls: a cycle on purpose"),
    },
)

_MEANT = ("cyclic", "cycle", "restart", "sgdr", "triangular")


@dataclass(frozen=True)
class Turn:
    """Index of the peak, of the lowest record and of the highest after it; the distance from a mirrored decay."""

    top: int
    low: int
    high: int
    mirror: float


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    if _is_meant(run):
        return
    for t in learning_rates(run):
        found = turn(t)
        if found is not None:
            yield _report(run, t, found)
            return


def _is_meant(run: Run) -> bool:
    settings = (f"{k}={v}".lower() for k, v in run.config.items() if any(w in str(k).lower() for w in ("sched", "lr")))
    return any(word in text for text in settings for word in _MEANT if "num_cycle" not in text)


def turn(t: Track) -> Turn | None:
    """The one turn of a smooth schedule; None for jumps, cycles, steps, noise, and rates that never turn."""
    y = t.y
    peak = float(y.max())
    if len(t) < 2 * RISING + 2 or peak <= 0 or jumps_up(t):
        return None
    marks = _extremes(y, BACK * peak)
    if not marks or len(marks) > MOST_MARKS:
        return None
    lows = [i for i, low in marks if low]
    if len(lows) != 1:
        return None
    low = lows[0]
    top, high = int(np.argmax(y[:low])), low + int(np.argmax(y[low:]))
    if y[low] > LOW * peak or y[high] - y[low] < BACK * peak or low - top < RISING or high - low < RISING:
        return None
    if _swings(t, top, low) or not _smooth(y[top:high + 1], peak):
        return None
    apart = _mirrored(t, top, low, high)
    return Turn(top, low, high, apart) if apart <= MIRROR else None


def _extremes(y: Floats, least: float) -> list[tuple[int, bool]]:
    """Inner turning points that stand out by `least`: their index and whether they are low; a few too many at most."""
    found: list[tuple[int, bool]] = []
    top, low, falling = 0, 0, None
    for i in range(1, len(y)):
        top = i if y[i] > y[top] else top
        low = i if y[i] < y[low] else low
        if len(found) > MOST_MARKS:
            return found
        if falling is not False and y[i] >= y[low] + least:
            if falling:
                found.append((low, True))
            falling, top = False, i
        elif falling is not True and y[i] <= y[top] - least:
            if falling is False:
                found.append((top, False))
            falling, low = True, i
    return found


def _swings(t: Track, top: int, low: int) -> bool:
    """Whether the schedule begins low and rises about as long as it then falls: a triangle."""
    up, down = float(t.x[top] - t.x[0]), float(t.x[low] - t.x[top])
    return bool(t.y[0] < LOW * t.y[top]) and up > SWING * down


def _smooth(y: Floats, peak: float) -> bool:
    """Whether no single step makes most of the way, neither down nor up."""
    return bool(np.abs(np.diff(y)).max() <= 0.45 * peak) and len(np.unique(y)) >= 0.5 * len(y)


def _mirrored(t: Track, top: int, low: int, high: int) -> float:
    """Mean distance of the climb from the decay reflected at the turn, as a share of the fall.

    The turn itself lies between records: the best of several positions around the lowest one counts.
    """
    x, y = t.x, t.y
    fall = max(float(y[top] - y[low]), 1e-300)
    before, after = float(x[low] - x[low - 1]), float(x[low + 1] - x[low])
    rising_x, rising_y = x[low:high + 1], y[low:high + 1]
    best = np.inf
    for centre in np.linspace(x[low] - before / 2, x[low] + after / 2, 9):
        back = 2 * centre - rising_x
        inside = (back >= x[top]) & (back <= x[low])
        if inside.sum() < RISING:
            continue
        expected = np.interp(back[inside], x[top:low + 1], y[top:low + 1])
        best = min(best, float(np.abs(expected - rising_y[inside]).mean()) / fall)
    return float(best)


def _report(run: Run, t: Track, found: Turn) -> Finding:
    peak, floor, back = float(t.y[found.top]), float(t.y[found.low]), float(t.y[found.high])
    where = plan(run, t)
    end = where.end if where is not None else float(t.x[-1])
    length = float(t.x[found.low])
    share, of_end = ratio(back, peak), ratio(length, end)
    before, after = _loss(run, t, found)
    worse = before is not None and after is not None and after > before
    known_loss = before is not None and after is not None
    loss = f"; the loss goes from {number(before or 0.0)} to {number(after or 0.0)}" if known_loss else ""
    known = "planned" if where is not None and where.known else "logged"
    return RULE.finding(
        f"the learning rate falls from {number(peak)} at {t.place(found.top)} to {number(floor)} at "
        f"{t.place(found.low)}, {100 * of_end:.3g} % of the {end:.10g} {known} {t.unit}s, turns and rises again to "
        f"{number(back)} at {t.place(found.high)} ({100 * share:.3g} % of its peak), mirroring the decay{loss}",
        t.at(found.low, found.high), t.series.source,
        bearing=Bearing.CAUSE if found.mirror <= MIRROR / 4 and floor <= 0.1 * peak else Bearing.SIGN,
        severity=Severity.HIGH if share >= 0.3 or worse else Severity.MEDIUM,
        measured={"position": float(t.series.position[t.index[found.low]]), "peak": peak, "floor": floor, "back": back,
                  "share": share, "schedule_end": length, "end": end, "planned": where is not None and where.known,
                  "ratio": ratio(end, length), "mirror": found.mirror, "loss_before": before, "loss_after": after,
                  "loss_worse": worse})


def _loss(run: Run, t: Track, found: Turn) -> tuple[float | None, float | None]:
    """The level of the loss around the turn and at the end of the climb."""
    loss = track(main_loss(run))
    if loss is None or loss.unit != t.unit or len(loss) < 6:
        return None, None
    span = 0.15 * float(t.x[found.high] - t.x[found.top])
    near = loss.y[np.abs(loss.x - t.x[found.low]) <= span]
    late = loss.y[np.abs(loss.x - t.x[found.high]) <= span]
    return (float(np.median(near)), float(np.median(late))) if len(near) and len(late) else (None, None)
