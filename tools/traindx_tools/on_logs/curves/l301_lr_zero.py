"""The learning rate is zero while training goes on.

Steps at a learning rate of 0 cost time and change nothing. It happens when a schedule is stepped more often than
planned (once a process, once a micro-batch), when its length was computed from something else than the run's steps, or
when a factor multiplies the rate away. The first record of a warm-up is 0 by construction, and a schedule that ends at
0 on the last step is right: both are left alone. So is a rate printed with so few decimals that a small one reads 0;
where a rate of 0 alone is printed and two other metrics or more end at one decimal place all, the finding says that a
rate below it reads so, and is of low severity.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.outcomes import improved, main_loss
from traindx_tools.on_logs.curves.schedules import Plan, learning_rates, plan, rounds_to_zero
from traindx_tools.on_logs.curves.shapes import Track, number, printed_unit, ratio, track
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

NOTHING = 1e-7
LATE = 0.9
ENOUGH = 3
HIDDEN = 1e-6

RULE = Rule(
    id="L301",
    name="lr-zero",
    title="The learning rate is zero while training goes on",
    severity=Severity.HIGH,
    sees="The record from which the learning rate is 0 (or 1e-7 of its peak) until the log ends, against the plan.",
    matters="Every step after it is lost.",
    alike=("Zero at the first record: warm-up starts there.", "Zero on the last steps: the schedule ends on time.",
           "0.0000 printed for a small rate.", "Frozen parameter groups with a rate of 0 beside one that has none."),
    confirm=("Print optimizer.param_groups[0]['lr'] and scheduler.last_epoch after each optimizer step: last_epoch "
             "must grow by 1.",
             "Compare the schedule's number of steps with the number of optimizer steps of the run."),
    thresholds={
        "nothing": Threshold(NOTHING, "of its peak", "below float32 resolution (1.2e-7) of the former step"),
        "late": Threshold(LATE, "of the planned run", "reaching 0 in the last tenth is how cool-downs are drawn"),
        "hidden": Threshold(HIDDEN, "last decimal place", "below half of it no rate of a training hides"),
        "enough": Threshold(ENOUGH, "records at zero", "one or two may be the end of the schedule"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: the first learning rate that is zero for too long."""
    for t in learning_rates(run):
        found = _from_start(run, t) if not t.y.any() else _from_later(run, t)
        if found is not None:
            yield found
            return


def _from_start(run: Run, t: Track) -> Finding | None:
    loss = track(main_loss(run))
    if len(t) < 5 or loss is None or len(loss) < 5 or improved(loss) >= 0.03 or "/" in t.series.name:
        return None
    unit = _common_unit(run, t)
    reads = "" if unit is None else f" (so reads a rate below {unit / 2:g}, as this log rounds its numbers)"
    return RULE.finding(
        f"the learning rate is 0 in all {len(t)} records{reads}, and the {loss.series} stays at {number(loss.y[-1])}",
        t.at(0, -1), t.series.source, bearing=Bearing.SIGN if unit is None else Bearing.COMPANION,
        severity=Severity.HIGH if unit is None else Severity.LOW,
        measured={"onset": "from-start", "position": float(t.series.position[t.index[0]]), "records": len(t),
                  "peak": 0.0, "rounded": unit is not None})


def _common_unit(run: Run, t: Track) -> float | None:
    """The last decimal place of all metrics beside a rate, where two or more have the same: numbers that are rounded
    before they are written. None where they differ, or a rate of training could not be hidden below it."""
    beside = [s.values[s.finite] for s in run.series if s.source == t.series.source and s is not t.series]
    units = [printed_unit(y) for y in beside if len(y) >= ENOUGH]
    broken = [u for u in units if u is None or u < 1]
    if len(broken) < 2 or len(set(broken)) > 1:
        return None
    unit = broken[0]
    return unit if unit is not None and unit >= HIDDEN else None


def _from_later(run: Run, t: Track) -> Finding | None:
    peak = float(t.y.max())
    alive = np.flatnonzero(t.y > NOTHING * peak)
    start = int(alive[-1]) + 1
    where = plan(run, t)
    if len(t) - start < ENOUGH or start < 2 or where is None:
        return None
    zero_at = float(t.x[start])
    share = ratio(zero_at, where.end)
    if share >= LATE or (rounds_to_zero(t) and _rounded_on_time(t, share)):
        return None
    left = where.last - zero_at
    if left < 0.03 * where.end:
        return None
    return _report(t, start, share, left, where, peak)


def _rounded_on_time(t: Track, share: float) -> bool:
    """Whether a cosine to zero that ends on time would be printed as 0 from here on already.

    It is below half of the last printed place u from the share arccos(u / peak - 1) / pi on, where the peak may have
    been half of u less than was printed; a fifth is left for steeper tails and a warm-up.
    """
    unit = printed_unit(t.y) or 0.0
    peak = max(float(t.y.max()) - unit / 2, unit / 2)
    return share >= 0.8 * float(np.arccos(np.clip(unit / peak - 1, -1, 1))) / np.pi


def _report(t: Track, start: int, share: float, left: float, where: Plan, peak: float) -> Finding:
    s = t.series
    exact = not t.y[start:].any()
    counted = f"{left:.4g} {t.unit}s follow" if t.unit != "record" else f"{len(t) - start} records follow"
    planned = f"{where.end:.10g} planned" if where.known else f"{where.end:.10g} logged"
    pace = f", i.e. {number(ratio(1, share))} times as fast as planned" if where.known else ""
    what = "reaches 0" if exact else f"falls to {number(float(t.y[start]))} and less (peak {number(peak)})"
    return RULE.finding(
        f"the learning rate {what} at {t.place(start)} of {planned} ({100 * share:.0f} %){pace}, and {counted} without "
        "learning", t.at(start, -1), s.source, bearing=Bearing.SIGN if where.known else Bearing.COMPANION,
        severity=Severity.HIGH if where.known or exact else Severity.MEDIUM,
        measured={"onset": "later", "position": float(s.position[t.index[start]]), "share": share, "left": left,
                  "exact": exact, "peak": peak, "pace": ratio(1, share), "planned": where.end,
                  "planned_known": where.known, "records": len(t) - start})
