"""The loss shoots up in the first part of the run and then sits at one level, no better than where it began.

The first updates were so large that they threw the weights out: what is left gives nearly the same output for every
input, and small gradients do not bring it back. A spike that recovers goes on falling; a run that never learned has
no spike. This rule asks for a rise by half above the start in the first half of the run, a flat end at the level of
the start, and a second sign: an accuracy that did not rise, a level that arithmetic explains (ln C), or a learning
rate of 0.01 and more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import curve, head, tail
from traindx_tools.on_logs.curves.constants import explain
from traindx_tools.on_logs.curves.learning import accuracy
from traindx_tools.on_logs.curves.outcomes import is_adversarial, is_reinforcement, main_loss
from traindx_tools.on_logs.curves.shapes import Track, number, tail_level, track, value_near
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

SPIKE, LEVEL, FLAT, ENOUGH = 1.5, 0.85, 0.05, 12
RISEN, GOOD, LARGE_RATE = 0.1, 0.5, 0.01

RULE = Rule(
    id="L222",
    name="spike-then-stuck",
    title="The loss shoots up early and then stays where it began",
    severity=Severity.HIGH,
    sees="The first value, the peak in the first half, the level of the second half, accuracy and learning rate.",
    matters="The weights are destroyed; more steps at this learning rate do not repair them.",
    alike=("A spike that recovers: the loss goes on falling below its start.",
           "A loss that never moved: L201.", "A resumed or changed run: the jump stands at that line."),
    confirm=("Repeat 100 steps with a tenth of the learning rate: no spike, and the loss falls.",
             "Print the norm of the weights before and after the spike."),
    thresholds={
        "spike": Threshold(SPIKE, "times the first value", "beyond the scatter of batches at the start"),
        "level": Threshold(LEVEL, "of the first value at the end", "less is learning"),
        "flat": Threshold(FLAT, "relative fall over the second half", "a curve that still falls may recover"),
        "rate": Threshold(LARGE_RATE, "learning rate", "ten times the default of adaptive optimizers"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    t = track(main_loss(run))
    if t is None or len(t) < ENOUGH or is_reinforcement(run) or is_adversarial(run) or not bool((t.y > 0).all()):
        return
    if not t.series.finite.all():
        return
    half = len(t) // 2
    first, peak_at = float(t.y[0]), int(np.argmax(t.y[:half]))
    peak, level = float(t.y[peak_at]), tail_level(t.y)
    before, after = float(np.median(t.y[half: half + half // 2])), float(np.median(t.y[half + half // 2:]))
    flat = abs(before - after) <= FLAT * before
    if peak < SPIKE * first or not LEVEL * first <= level <= SPIKE * first or not flat:
        return
    lr = value_near(run.first("learning_rate"), t.series, int(t.index[peak_at]))
    signs = _signs(run, t, lr)
    if signs:
        yield RULE.finding(
            f"{t.series} shoots up from {number(first)} to {number(peak)} at {t.place(peak_at)} and then stays at "
            f"{number(level)} to the end ({t.place(-1)}); {', '.join(signs)}", t.at(0, -1), t.series.source,
            bearing=Bearing.SIGN,
            measured={"first": first, "peak": peak, "level": level, "lr": lr, "signs": len(signs),
                      "position": float(t.series.position[t.index[peak_at]])})


def _signs(run: Run, t: Track, lr: float | None) -> list[str]:
    found = []
    acc = accuracy(run, "train", "validation", "test")
    if acc is not None and len(acc) >= 4:
        if tail(acc.values) - head(acc.values) > RISEN or tail(acc.values) >= GOOD:
            return []
        found.append(f"{acc.series} is {number(tail(curve(acc.series).values))}")
    match = explain(run, t.series)
    if match is not None:
        found.append(f"the level is {number(match.expected)}, the {match.kind.replace('-', ' ')}")
    if lr is not None and lr >= LARGE_RATE:
        found.append(f"the learning rate is {number(lr)}")
    return found
