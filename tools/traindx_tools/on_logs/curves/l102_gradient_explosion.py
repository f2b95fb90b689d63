"""The gradient norm grows by orders of magnitude and does not come back.

A gradient norm is large at the start of many runs and jumps at single batches; neither is an explosion. This rule asks
for growth against the lowest level seen before, to a size that is large in itself, which lasts until the log ends or
breaks off in NaN, while the loss does not improve. Summed (not averaged) losses have norms in the thousands all the
time: those are left alone as long as the loss falls.

`onset` in the measured values: "ramp" (several records between the old level and the peak), "abrupt" (one record),
"from-start" (above the threshold from the first record, with a loss that does not fall).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.onsets import rise_begins
from traindx_tools.on_logs.curves.outcomes import growth_before_end, improved, main_loss
from traindx_tools.on_logs.curves.schedules import rate_left
from traindx_tools.on_logs.curves.shapes import (
    Track,
    end_words,
    head_level,
    number,
    ratio,
    smooth,
    tail_level,
    track,
    value_near,
)
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

LARGE = 1e3
RATIO, STEEP = 10.0, 100.0
DECAYED, STANDS = 0.1, 0.05

RULE = Rule(
    id="L102",
    name="gradient-explosion",
    title="The gradient norm explodes",
    severity=Severity.HIGH,
    sees="The gradient norm (whole or of one module) against the lowest level before, its peak and whether it lasts.",
    matters="Updates of that size destroy what was learned; the next stop is usually a non-finite loss.",
    alike=("A large norm in the first steps that falls: initialisation.",
           "A spike at one step that is gone at the next: a hard batch.",
           "A constantly large norm with a falling loss: a loss that is summed instead of averaged."),
    confirm=("Log the gradient norm of each module every step: the module where it starts to grow is the place.",
             "Lower the learning rate tenfold: a ramp that goes away was the step size."),
    thresholds={
        "large": Threshold(LARGE, "norm", "a norm beyond 1e3 counts as exploding in published debugging guides"),
        "ratio": Threshold(RATIO, "times the level before", "together with `large`"),
        "decayed": Threshold(DECAYED, "of the learning rate", "a step too large by less than ten times has become "
                                                              "small; a norm that stands then has another cause"),
        "stands": Threshold(STANDS, "of the norm", "range from its height on; the norms of batches scatter more"),
        "steep": Threshold(STEEP, "times the level before", "arithmetic: two decades is beyond batch noise, any size"),
    },
)


@dataclass(frozen=True)
class Explosion:
    """Growth from `base` at `low` to `peak` at `high` (indices in the track)."""

    onset: str
    base: float
    peak: float
    low: int
    high: int


def check(run: Run) -> Iterator[Finding]:
    """One finding for the whole norm, else one for the module whose norm grows most."""
    names = dict.fromkeys(s.name for s in run.series if s.name == "grad_norm" or s.name.startswith("grad_norm/"))
    found = [(t, e) for name in sorted(names) if (t := track(run.first(name))) is not None
             and (e := _explosion(run, t)) is not None]
    whole = [pair for pair in found if pair[0].series.name == "grad_norm"]
    for t, e in whole[:1] or sorted(found, key=lambda p: -ratio(p[1].peak, p[1].base))[:1]:
        yield _report(run, t, e)


def _explosion(run: Run, t: Track) -> Explosion | None:
    breaks_off = not bool(t.series.finite[-1])
    if len(t) < (2 if breaks_off else 5):
        return None
    grown = _growth_to_the_end(t) if breaks_off else _growth_that_stays(t)
    if grown is not None and (breaks_off or not _falls_after(run, t, grown.low)):
        return grown
    return _from_start(run, t, breaks_off)


def _growth_to_the_end(t: Track) -> Explosion | None:
    if growth_before_end(t.y) < RATIO:
        return None
    high = len(t) - 1 - int(np.argmax(t.y[::-1][:3]))
    low = rise_begins(t.y, high)
    return _explosion_between(t, low, high, float(t.y[low]), float(t.y[high])) if low < high else None


def _growth_that_stays(t: Track) -> Explosion | None:
    level, at = smooth(t)
    reached = int(np.argmax(level >= 0.5 * level.max()))
    base = min(head_level(t.y), float(level[: reached + 1].min()))
    peak = float(level.max())
    large = (ratio(peak, base) >= RATIO and peak >= LARGE) or (ratio(peak, base) >= STEEP and peak >= 10.0)
    if not large or tail_level(t.y) < 0.3 * peak:
        return None
    high = int(at[reached])
    low = min(high, rise_begins(t.y, high))
    return _explosion_between(t, low, high, base, float(t.y.max()))


def _explosion_between(t: Track, low: int, high: int, base: float, peak: float) -> Explosion:
    between = t.y[low + 1: high]
    steps = int(((between > 3 * base) & (between < peak / 3)).sum())
    return Explosion("ramp" if steps >= 1 else "abrupt", base, peak, low, high)


def _from_start(run: Run, t: Track, breaks_off: bool) -> Explosion | None:
    if head_level(t.y) < LARGE or tail_level(t.y) < LARGE:
        return None
    if not breaks_off and (improved(track(main_loss(run))) >= 0.05 or main_loss(run) is None):
        return None
    return Explosion("from-start", head_level(t.y), float(t.y.max()), 0, int(np.argmax(t.y)))


def _falls_after(run: Run, t: Track, low: int) -> bool:
    """Whether the loss goes on falling while the norm is high: then nothing explodes."""
    loss = track(main_loss(run))
    if loss is None or not loss.series.finite[-1]:
        return False
    then = value_near(loss.series, t.series, int(t.index[low]))
    return then is not None and then > 0 and tail_level(loss.y) < 0.9 * then


def _stands_while_rate_falls(run: Run, t: Track, high: int) -> bool:
    """Whether the norm hardly moves from its height on while the learning rate goes to a tenth and less."""
    after, left = t.y[high:], rate_left(run, t, high)
    if left is None or left > DECAYED or len(after) < 5:
        return False
    return float(np.ptp(after)) <= STANDS * float(np.median(after))


def _report(run: Run, t: Track, e: Explosion) -> Finding:
    s = t.series
    factor = ratio(e.peak, e.base)
    ends = not bool(s.finite[-1])
    if e.onset == "from-start":
        text = f"{s.name} is {number(e.base)} at {t.place(0)} already and peaks at {number(e.peak)}"
    else:
        text = (f"{s.name} rose from {number(float(t.y[e.low]))} at {t.place(e.low)} to "
                f"{number(float(t.y[e.high]))} at {t.place(e.high)}, {number(factor)} times as large"
                + (f" at its peak of {number(e.peak)}" if e.peak > float(t.y[e.high]) else ""))
    tail = ", and is not finite after that" if ends else f", and ends at {end_words(t)}"
    return RULE.finding(
        text + tail, t.at(min(e.low, e.high), e.high), s.source, bearing=Bearing.SIGN,
        severity=Severity.HIGH if ends or e.onset != "from-start" else Severity.MEDIUM,
        measured={"metric": s.name, "module": s.name.partition("/")[2] or None, "onset": e.onset, "base": e.base,
                  "peak": e.peak, "ratio": factor, "from_position": float(s.position[t.index[e.low]]),
                  "position": float(s.position[t.index[e.high]]), "ends_nonfinite": ends,
                  "despite_decay": _stands_while_rate_falls(run, t, e.high),
                  "lr": value_near(run.first("learning_rate"), s, int(t.index[e.high]))})
