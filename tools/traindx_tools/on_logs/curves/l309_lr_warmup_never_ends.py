"""The learning rate still rises when training ends.

A warm-up is meant for the first per cent of a run. Where its length is counted in another unit than the steps (samples
for batches, micro-batches for updates, tokens for steps), where the schedule is stepped too seldom, or where the run
was shortened and the warm-up was not, it fills the whole run: the rate never reaches the peak that was configured, and
the decay that was to follow never comes. The run learns, only slowly, so nothing but the rate itself shows it.
Where it moves in levels, once in many records, and the configured length would be over by the logged steps, the
schedule is stepped in another unit than its length is counted in. `kind`: "unit" there, else "length".

A rising rate at the end of a log says nothing where the run goes on: with an announced end that was not reached this
is a remark, and without any sign that the run was over it is no more than one of low severity. Rates that grow by a
constant factor are a range test, and those that bend over are about to reach their peak: both are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves import l304_lr_per_epoch_step_confusion
from traindx_tools.on_logs.curves.schedules import Plan, config_number, learning_rates, plan, planned_epochs
from traindx_tools.on_logs.curves.shapes import Track, line_fit, number, ratio
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

ENOUGH, STRAIGHT, FROM, OVER, STILL = 5, 0.998, 0.5, 0.97, 0.75
HELD, ARRIVED = 2, 2.0
"""Records from which a level is one that holds; times the usual length of one from which the rate has arrived."""

RULE = Rule(
    id="L309",
    name="lr-warmup-never-ends",
    title="The learning rate still rises when training ends",
    severity=Severity.HIGH,
    sees="A learning rate that rises from its first record to its last, against the end of the run and the peak that "
         "the configuration states.",
    matters="The run never trains at the rate it was tuned for and never decays: it is slow and ends unsettled.",
    alike=("A run that was stopped, or a log that was cut, during its warm-up.",
           "A learning-rate range test: the rate rises on purpose, by a constant factor or to where the loss breaks."),
    confirm=("Print the warm-up length beside the planned optimizer steps: print(warmup_steps, total_steps).",
             "Compare the logged rate at a step with peak * step / warmup_steps: it gives the warm-up length."),
    thresholds={
        "enough": Threshold(ENOUGH, "records", "fewer do not show a slope that holds"),
        "straight": Threshold(STRAIGHT, "R^2 of a line", "a computed ramp, allowing for printed digits"),
        "from": Threshold(FROM, "of the last rate", "a warm-up begins well below where it is"),
        "over": Threshold(OVER, "of the planned steps", "the last record comes up to one logging interval early"),
        "still": Threshold(STILL, "of the mean slope", "a rate that bends over is about to reach its peak"),
    },
)

PEAK_KEYS = ("peak_lr", "max_lr", "lr_max", "peak_learning_rate", "max_learning_rate", "learning_rate", "lr",
             "base_lr", "peak", "lr_peak", "eta_max")
WARM_UP_KEYS = ("warmup_steps", "warmup_iters", "num_warmup_steps", "lr_warmup_steps", "lr_warmup_iters",
                "warmup_updates", "warmup_iterations", "n_warmup", "warmup")
_OVER = re.compile(r"train(?:ing)? (?:is |has )?(?:complete|finish|done|over|ended)|finished training|`?trainer\.fit`? "
                   r"stopped|max_(?:epochs|steps)=\d+`? reached|train_runtime|\bdone\b", re.IGNORECASE)
_RANGE_TEST = re.compile(r"range.?test|lr.?find|find.?lr|sweep", re.IGNORECASE)


@dataclass(frozen=True)
class Ramp:
    """A rate that rises from record to record to the end of the log."""

    slope: float
    straight: bool
    held: float = 0.0
    """Records for which it holds one level, typically; 0 where it moves from each record to the next."""


def check(run: Run) -> Iterator[Finding]:
    """At most one finding, on the main learning rate."""
    if any(_RANGE_TEST.search(n.text) for n in run.notes[:2000]):
        return
    for t in learning_rates(run)[:1]:
        rise, where = ramp(t), plan(run, t)
        if rise is None or where is None or any(l304_lr_per_epoch_step_confusion.check(run)):
            return
        yield _report(run, t, rise, where)


def ramp(t: Track) -> Ramp | None:
    """The rise that fills the whole track; None where it stops, bends over, begins high or is a geometric ladder."""
    levels, held = _levels(t)
    if levels is None:
        return None
    t = levels
    y = t.y
    if len(t) < ENOUGH or float(y[0]) > FROM * float(y[-1]) or (np.diff(y) < 0).any() or len(np.unique(y)) < ENOUGH:
        return None
    slope, _, fit = line_fit(t.x, y)
    if slope <= 0 or _geometric(t, fit):
        return None
    last = max(3, len(t) // 4)
    end_slope = line_fit(t.x[-last:], y[-last:])[0]
    if end_slope < STILL * ratio(float(y[-1] - y[0]), float(t.x[-1] - t.x[0])) or y[-1] == y[-2]:
        return None
    return Ramp(slope, fit >= STRAIGHT, held)


def _levels(t: Track) -> tuple[Track | None, float]:
    """A track that holds one level over several records (a schedule that is stepped once an epoch) by the first record
    of each level, and for how many records one holds. None where the last one holds much longer: it has arrived.
    """
    first = np.flatnonzero(np.r_[True, np.diff(t.y) != 0.0])
    widths = np.diff(np.r_[first, len(t.y)])
    held = float(np.median(widths))
    if held < HELD or len(first) < ENOUGH:
        return t, 0.0
    kept = Track(t.series, t.index[first], t.x[first], t.y[first], t.unit, t.wrapped)
    return (None if widths[-1] > ARRIVED * held else kept), held


def _geometric(t: Track, fit: float) -> bool:
    return bool((t.y > 0).all()) and line_fit(t.x, np.log(t.y))[2] > max(fit, 0.995)


def _report(run: Run, t: Track, rise: Ramp, where: Plan) -> Finding:
    first, last = float(t.y[0]), float(t.y[-1])
    peak = config_number(run.config, PEAK_KEYS)
    peak = peak if peak is not None and peak >= 0.98 * last else None
    length = config_number(run.config, WARM_UP_KEYS)
    ended, why = _ended(run, where, length)
    share = ratio(last, peak) if peak is not None else None
    reached = f" and is {100 * share:.3g} % of the configured {number(peak)}" if share is not None and peak else ""
    rises = (f"the learning rate rises {'linearly ' if rise.straight else ''}from {number(first)} at {t.place(0)} to "
             f"{number(last)} at {t.place(-1)}")
    in_steps = rise.held > 0 and length is not None and t.unit == "step" and length <= float(t.x[-1])
    unit = (f"; it moves once in about {rise.held:g} records, and the configured warm-up of {number(length or 0)} "
            "steps would be over by then: the schedule is stepped in another unit") if in_steps else ""
    never = f"the warm-up never ends and no decay follows{unit}"
    text = (f"{rises}, {why},{reached or ' without ever falling'}: {never}" if ended
            else f"{rises}, the last record of the log,{reached} ({why})".replace(", (", " ("))
    return RULE.finding(
        text, t.at(0, -1), t.series.source, bearing=_bearing(t, rise, ended, where, share),
        severity=Severity.HIGH if ended else Severity.INFO if where.known else Severity.LOW,
        measured={"kind": "unit" if in_steps else "length", "ended": ended, "done": where.done, "first": first,
                  "last": last, "planned": where.end if where.known else None, "peak": peak, "share": share,
                  "slope": rise.slope, "linear": rise.straight, "warmup_steps": length, "records": len(t),
                  "position": float(t.series.position[t.index[0]])})


def _bearing(t: Track, rise: Ramp, ended: bool, where: Plan, share: float | None) -> Bearing:
    if not ended:
        return Bearing.COMPANION
    computed = rise.straight and len(t) >= 8 and (where.known or (share is not None and share < 0.9))
    return Bearing.CAUSE if computed else Bearing.SIGN


def _ended(run: Run, where: Plan, warm_up: float | None) -> tuple[bool, str]:
    """Whether the run was over at its last record, and the words that say why."""
    if where.known:
        over = where.last >= min(OVER * where.end, where.end - 1)
        return over, f"{'the end of' if over else f'{100 * where.done:.3g} % of'} the {where.end:.10g} planned"
    epochs = planned_epochs(run)
    if epochs is not None and epochs >= 2:
        seen = [float(s.epoch[np.isfinite(s.epoch)].max()) for s in run.series if np.isfinite(s.epoch).any()]
        if seen and max(seen) >= epochs - 1 + 0.5 * (max(seen) % 1 > 0):
            return True, f"the last of the {epochs:g} planned epochs"
    told = next((n for n in run.notes if _OVER.search(n.text)), None)
    if told is not None:
        return True, f'where the log says "{told.text.strip()[:60]}"'
    return False, "whether the run was to go on is not said"
