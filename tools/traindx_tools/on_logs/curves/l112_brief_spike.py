"""Loss or gradient norm leave their own scatter for a few records and come back.

What counts as far is taken from the series itself: from its scatter around a running median, and from how far it goes
down, where nothing spikes. A cross entropy that rises from 3.0 to 4.4 among values that stray by 0.05 is 28 times its
scatter though it is not half as large again (L107 judges by the ratio). Gradient norms are compared by their logarithm.

One wild record is a hard batch and a remark (INFO). Where the loss needs several records to come back and the gradient
norm jumped with it, the weights themselves took a step too far: told as a minor finding (LOW), with its place. It came
back, so it is no cause of how the run ended. A loss ten times worse than that of an untrained model is no batch: that
step was wrong (MEDIUM).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import (
    goes_on_after_change,
    is_adversarial,
    is_beyond_untrained,
    is_reinforcement,
    main_loss,
)
from traindx_tools.on_logs.curves.shapes import Track, neighbourhood, number, printed_unit, ratio, runs_of, track
from traindx_tools.on_logs.run import Floats, Run
from traindx_tools.rules import Rule, Threshold

FAR, APART, OUT, TALL, RATIO, RECORDS, FEWEST, MOST = 8.0, 3.0, 4.0, 1.5, 5.0, 3, 30, 5
USUAL = 0.99
BESIDE = 40
"""Records on each side of a spike that its scatter is taken from as well."""

RULE = Rule(
    id="L112",
    name="brief-spike",
    title="Loss or gradients spike and come back",
    severity=Severity.LOW,
    sees="the loss, and the logarithm of the gradient norm, against a running median and their own scatter",
    matters="Some steps went wrong at a definite place: a batch, a rate, an overflow. The next may not come back.",
    alike=("Noise with heavy tails: single records, up and down.", "A jump at each epoch: L206.",
           "A jump that stays: L107, L106."),
    confirm=("Look at the batches of that place: length, labels, source.",
             "Log the gradient norm before clipping, and the largest entry of each batch's loss, around that step."),
    thresholds={
        "far": Threshold(FAR, "robust standard deviations", "beyond chance for any run that is not heavy-tailed"),
        "apart": Threshold(APART, "x the largest fall, and x the 99th percentile of what lies above the median",
                           "heavy tails go down as well, and many times"),
        "ratio": Threshold(RATIO, "x, gradient norm", "batches differ by less"),
        "records": Threshold(RECORDS, "records", "one hard batch is one record"),
    },
)


@dataclass(frozen=True)
class _Spike:
    track: Track
    start: int
    end: int
    base: float
    peak: float
    times: float
    """Its height in standard deviations."""

    @property
    def lines(self) -> tuple[int, int]:
        """The lines of the log from its first record to its last."""
        line = self.track.series.line
        return int(line[self.track.index[self.start]]), int(line[self.track.index[self.end]])

    @property
    def width(self) -> int:
        """Records that it lasts."""
        return self.end - self.start + 1


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: a spike of both, else the highest of one."""
    t = track(main_loss(run))
    if t is None or is_reinforcement(run) or is_adversarial(run) or goes_on_after_change(run, t):
        return
    losses, gradients = _spikes(t, logarithm=False), _spikes(track(run.first("grad_norm", group="train")), True)
    both = [(a, b) for a in losses for b in gradients if _together(a, b) and b.peak >= RATIO * b.base]
    if both:
        yield _of_both(*max(both, key=lambda p: p[0].times))
        return
    known = bool((t.y > 0).all())  # to L107, which judges tall ones
    alone = [s for s in losses if s.peak <= TALL * s.base or s.base <= 0 or (not known and _is_beyond(s))] + [
        s for s in gradients if s.peak >= RATIO * s.base]
    if alone:
        yield _of_one(max(alone, key=lambda s: s.times))


def _spikes(t: Track | None, logarithm: bool) -> list[_Spike]:
    """What leaves the scatter and is back before the log ends; none where it happens again and again."""
    if t is None or len(t) < FEWEST or (logarithm and not bool((t.y > 0).all())):
        return []
    y = np.log(t.y) if logarithm else t.y
    rest = y - neighbourhood(y)
    settled = rest[max(FEWEST // 3, len(y) // 20):]  # the first steep descent is no spike
    floor = (printed_unit(t.y) or 0.0) if not logarithm else 0.01
    scatter = max(1.4826 * float(np.median(np.abs(settled))), floor)
    high = max(FAR * scatter, APART * float(-settled.min()))
    first = len(y) - len(settled)
    found = [(a, b) for a, b in runs_of(rest > OUT * scatter)
             if a >= first and b < len(y) - 1 and float(rest[a: b + 1].max()) > max(high, _usual(rest, first, a, b))]
    if len(found) > MOST:
        return []
    # a loss that ends at 1e-12 scatters less there than where it began: what is beside the spike tells how far it is
    beside = {(a, b): max(scatter, _beside(rest, a, b)) for a, b in found}
    return [_spike(t, a, b, rest, size) for (a, b), size in beside.items()
            if float(rest[a: b + 1].max()) > FAR * size]


def _beside(rest: Floats, start: int, end: int) -> float:
    """The scatter of the records beside a spike, in standard deviations."""
    near = np.concatenate([rest[max(0, start - BESIDE): start], rest[end + 1: end + 1 + BESIDE]])
    return 1.4826 * float(np.median(np.abs(near))) if len(near) else 0.0


def _usual(rest: Floats, first: int, start: int, end: int) -> float:
    """How high the highest hundredth of all other records stands, with the margin that a spike must have."""
    others = np.concatenate([rest[first:start], rest[end + 1:]])
    return APART * float(np.quantile(others, USUAL)) if len(others) else np.inf


def _spike(t: Track, start: int, end: int, rest: Floats, scatter: float) -> _Spike:
    before = t.y[max(0, start - 5): start]
    return _Spike(t, start, end, float(np.median(before)), float(t.y[start: end + 1].max()),
                  float(rest[start: end + 1].max()) / scatter if scatter > 0 else np.inf)


def _together(a: _Spike, b: _Spike) -> bool:
    """Whether two spikes of one log stand at the same place."""
    if a.track.series.source != b.track.series.source:
        return False
    (first, last), (start, end) = a.lines, b.lines
    slack = max(1, last - first)
    return start <= last + slack and end >= first - slack


def _is_beyond(loss: _Spike) -> bool:
    return is_beyond_untrained(loss.track, loss.peak, loss.base)


def _words(s: _Spike) -> str:
    t = s.track
    high = s.start + int(np.argmax(t.y[s.start: s.end + 1]))
    before = f"{number(float(t.y[s.start - 1]))} at {t.place(s.start - 1)}" if s.start else number(s.base)
    return (f"{t.series} rises from {before} to {number(s.peak)} at {t.place(high)} and is back at "
            f"{number(float(t.y[s.end + 1]))} at {t.place(s.end + 1)}")


def _of_both(loss: _Spike, gradient: _Spike) -> Finding:
    grown = ratio(gradient.peak, gradient.base)
    return RULE.finding(
        f"{_words(loss)} ({number(loss.times)} times its scatter); the gradient norm rises from "
        f"{number(gradient.base)} to {number(gradient.peak)} with it ({number(grown)} times)",
        loss.track.at(loss.start, loss.end), loss.track.series.source, bearing=Bearing.COMPANION,
        severity=_severity(loss),
        measured={**_measured(loss), "gradient_base": gradient.base, "gradient_peak": gradient.peak,
                  "gradient_ratio": grown})


def _severity(loss: _Spike) -> Severity:
    if _is_beyond(loss):
        return Severity.MEDIUM
    return Severity.LOW if loss.width >= RECORDS else Severity.INFO


def _of_one(s: _Spike) -> Finding:
    loss = not s.track.series.name.startswith("grad_norm")
    return RULE.finding(f"{_words(s)} ({number(s.times)} times its scatter)", s.track.at(s.start, s.end),
                        s.track.series.source, bearing=Bearing.COMPANION, measured=_measured(s),
                        severity=Severity.MEDIUM if loss and _is_beyond(s) else Severity.INFO)


def _measured(s: _Spike) -> dict[str, float | str | bool]:
    return {"metric": s.track.series.name, "recovered": True, "base": s.base, "peak": s.peak, "records": s.width,
            "times_scatter": round(s.times, 2), "position": float(s.track.series.position[s.track.index[s.start]])}
