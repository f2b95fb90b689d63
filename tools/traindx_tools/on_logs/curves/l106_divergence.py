"""The training loss rises and stays up, without becoming non-finite.

A loss that had been falling turns and climbs, or climbs from the first record on. Told apart from noise by the
record-to-record scatter, from a spike by looking at where the run ends, and from a warm restart by how much of the
former gain is lost. A rise that is small against the scatter, but steady over half the run and more, is told as such
(`steady_rise`), unless the learning rate rises with it. A step up at a change that the log announces (a stage, a
longer sequence) after which the loss falls again is the new task. Policy losses and adversarial losses have no
meaningful level and are left alone; a rising validation loss with a falling training loss is over-fitting (L203),
not this. Where the log shows that the loss is a sum with a weight that grows, and it falls at the last weight, the
rise is that of the weight: low, and said so.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.changing_objective import added, weighed
from traindx_tools.on_logs.curves.outcomes import (
    Rise,
    goes_on_after_change,
    is_adversarial,
    is_reinforcement,
    lasting_rise,
    main_loss,
)
from traindx_tools.on_logs.curves.schedules import rate_left
from traindx_tools.on_logs.curves.shapes import (
    Track,
    median_words,
    number,
    ratio,
    tail_count,
    tail_level,
    track,
    value_near,
)
from traindx_tools.on_logs.curves.steady_rise import CLEAR, OF_LEVEL, RISING, steady_rise
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

DECAYED = 0.1
RISEN = 1.5
"""Times its value at the onset that the learning rate stands at at the end where a rise may be that of a warm-up."""

RULE = Rule(
    id="L106",
    name="divergence",
    title="The training loss rises and stays up",
    severity=Severity.HIGH,
    sees="The training loss at its start, at its best and at its end, against its own scatter.",
    matters="The run gets worse with every step; its last checkpoint is not its best.",
    alike=("A spike that comes back: L107.", "A loss that turns NaN: L101 tells what came before.",
           "A rising validation loss alone: over-fitting.", "Losses of a GAN or a policy: they hover by design."),
    confirm=("Halve the learning rate from a checkpoint before the rise: a rise that goes away was the step size.",
             "Look at what changed at the onset: data stage, learning rate, resume, unfrozen part."),
    thresholds={
        "noise": Threshold(6, "standard deviations of the record-to-record noise", "beyond chance in any log length"),
        "lost": Threshold(0.5, "share of the former gain", "less is a bump"),
        "decayed": Threshold(DECAYED, "of the learning rate", "a step up to ten times too large is small then"),
        "level": Threshold(1.3, "times the best (1.5 times the start where nothing was gained)", "arithmetic"),
        "steady": Threshold(RISING, "of the pairs of stretches, rising less falling", "by chance one series in 3,000"),
        "steady_noise": Threshold(CLEAR, "times the scatter between stretches", "a level that wanders rarely has more"),
        "steady_level": Threshold(OF_LEVEL, "of the best level", "less is a plateau that drifts"),
    },
)


def _goes_on_while_rate_falls(run: Run, t: Track, onset: int) -> bool:
    """Whether the loss does not come down although the learning rate went to a tenth and less since it rose."""
    left, after = rate_left(run, t, onset), t.y[onset:]
    if left is None or left > DECAYED or len(after) < 6:
        return False
    return tail_level(after) >= float(np.median(after))


def _counts_down(t: Track) -> bool:
    """Whether each step is below the one before it: what is left of the run, or the newest record first."""
    return len(t) >= 3 and bool((np.diff(t.series.position) < 0).all())


def _creeps_up(run: Run, t: Track) -> Rise | None:
    """A steady rise during which the learning rate does not rise: a loss that follows a warm-up says nothing yet."""
    rise = steady_rise(t)
    left = rate_left(run, t, rise.onset) if rise is not None else None
    return None if left is not None and left > RISEN else rise


def _words(t: Track, rise: Rise, from_start: bool) -> str:
    """The values that the log holds at the places that are named; the level at the end is said to be a median."""
    near = t.y[max(0, rise.best_at - tail_count(len(t))): rise.best_at + tail_count(len(t)) + 1]
    low = max(0, rise.best_at - tail_count(len(t))) + int(np.argmin(near))
    began = f"from {number(float(t.y[0]))} at {t.place(0)}" if from_start else (
        f"from its best of {number(float(t.y[low]))} at {t.place(low)} (it began at {number(float(t.y[0]))})")
    level = median_words(t.series, int(t.index[-(rise.ending or tail_count(len(t)))]), int(t.index[-1]))
    return (f"rises {began} to {number(float(t.y[-1]))} at the end ({t.place(-1)}; {number(rise.tail)} is the "
            f"{level}), from {t.place(rise.onset)} on")


def _steady_words(t: Track, rise: Rise) -> str:
    part = max(1, (len(t) - rise.best_at) // 12)
    before = median_words(t.series, int(t.index[rise.best_at]), int(t.index[rise.best_at + part - 1]))
    after = median_words(t.series, int(t.index[-part]), int(t.index[-1]))
    first, last = (float(np.median(v)) for v in (t.y[rise.best_at: rise.best_at + part], t.y[-part:]))
    return f"rises slowly and steadily, from {number(first)} ({before}) to {number(last)} ({after})"


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    t = track(main_loss(run))
    if t is None or is_reinforcement(run) or is_adversarial(run) or not bool(t.series.finite[-1]):
        return
    rise = lasting_rise(t)
    steady = None if rise is not None else _creeps_up(run, t)
    rise = rise or steady
    if rise is None or goes_on_after_change(run, t):
        return
    from_start = rise.best_at == 0 or rise.head <= rise.best
    words = _steady_words(t, rise) if steady is not None else _words(t, rise, from_start)
    worse = rise.tail > rise.head
    down = _counts_down(t)
    other = weighed(run, t, rise.onset)
    new = added(run, t)
    another = (other is not None and other.falls) or (new is not None and new.explains)
    order = "; the steps count down: if the file lists the newest record first, the loss falls" if down else ""
    if new is not None and new.explains:
        order = f"; {new.words}"
    elif other is not None and another:
        order = f"; {other.words}"
    yield RULE.finding(
        f"{t.series} {words}{order}",
        t.at(rise.onset, -1), t.series.source, bearing=Bearing.SIGN,
        severity=Severity.LOW if down or another else Severity.HIGH if worse or rise.factor >= 2 else Severity.MEDIUM,
        measured={"metric": t.series.name, "head": rise.head, "best": rise.best, "tail": rise.tail,
                  "factor": rise.factor, "steady": steady is not None, "onset": "from-start" if from_start else "later",
                  "position": float(t.series.position[t.index[rise.onset]]),
                  "despite_decay": _goes_on_while_rate_falls(run, t, rise.onset),
                  "worse_than_start": worse, "another_objective": another,
                  "times_start": ratio(rise.tail, rise.head) if rise.head > 0 else None,
                  "lr": value_near(run.first("learning_rate"), t.series, int(t.index[rise.onset]))})
