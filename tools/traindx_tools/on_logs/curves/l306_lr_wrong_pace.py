"""The schedule runs k times as fast, or k times as slow, as the run.

A linear or cosine decay knows how many steps it was built for. When it reaches its floor at 1/k of the planned steps,
it is advanced k times a step or was built for a k-th of them; a whole k is a strong hint at its origin: the number of
processes (a wrapped scheduler steps once a process), gradient accumulation (stepped at every micro-batch), or epochs.
The reverse is seen at the end: a decay that has gone only 1/k of its way when the run is over was built for k times as
many steps (micro-batches counted as steps, or the length of an unsharded loader).

The end is read off the fitted shape, so that a coarse logging interval does not blur k. Decays to a minimum rate that
go on there for a while are in use: without a matching k, and above 0.1 % of the peak, they are left alone. So are step
schedules, restarts, and runs that were merely stopped early.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.schedules import (
    Decay,
    Plan,
    config_number,
    decay,
    epochs,
    learning_rates,
    plan,
    steps_per_epoch,
)
from traindx_tools.on_logs.curves.shapes import Track, number, printed_unit, ratio
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

ON_TIME, WHOLE, FLOOR = 1.25, 0.03, 1e-3
SLOW = 1.7
COARSE = 0.05
PROCESSES, ACCUMULATION = "number of processes (world size)", "gradient accumulation steps"

RULE = Rule(
    id="L306",
    name="lr-wrong-pace",
    title="The learning-rate schedule runs at the wrong pace",
    severity=Severity.HIGH,
    sees="Where the decay ends by its fitted shape against the planned steps, and what the ratio is equal to.",
    matters="Too fast: the rest of the run does not learn. Too slow: the run ends before the rate is small.",
    alike=("A decay to a minimum rate that is held on purpose.", "A run that was stopped early.",
           "Step schedules: the last step may be anywhere."),
    confirm=("Count: print scheduler.last_epoch at the end of the run and compare it with the optimizer steps.",
             "With accelerate: a prepared scheduler advances num_processes times a step unless split_batches is set."),
    thresholds={
        "on_time": Threshold(ON_TIME, "planned / end of the decay", "cool-downs end up to a fifth early"),
        "whole": Threshold(WHOLE, "relative distance of k from a whole number", "rounding of steps and warm-up"),
        "floor": Threshold(FLOOR, "of the peak", "minimum rates in use lie above, usually at 10 %"),
        "coarse": Threshold(COARSE, "last printed place / peak", "a coarser print shows no shape"),
        "slow": Threshold(SLOW, "end of the decay / planned", "arithmetic: k = 2 less a tenth for the fit"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    for t in learning_rates(run):
        d, where = decay(t), plan(run, t)
        if d is None or where is None or (t.unit == "record" and where.known):
            continue
        found = _too_fast(run, t, d, where) if d.reached is not None else _too_slow(run, t, d, where)
        if found is not None:
            yield found
            return


def _too_fast(run: Run, t: Track, d: Decay, where: Plan) -> Finding | None:
    assert d.reached is not None
    k = ratio(where.end, d.end)
    if k < ON_TIME or (printed_unit(t.y) or 0.0) > COARSE * d.peak:
        return None
    whole = _whole_number(where.end, d, t)
    equal = _equals(run, whole)
    low = d.floor <= FLOOR * d.peak
    if not low and equal is None:
        return None
    left = where.last - d.end
    named = f", a whole multiple equal to the {equal}" if equal else ", a whole multiple" if whole else ""
    planned = "planned" if where.known else "logged"
    pace = whole or k
    text = (f"the {d.shape} decay of the learning rate reaches {number(d.floor)} at {t.unit} {d.end:.4g} of "
            f"{where.end:.10g} {planned} ({100 / k:.0f} %): it runs {pace:.3g} times as fast as the run{named}; "
            f"{left:.4g} {t.unit}s follow")
    certain = where.known and whole is not None and d.floor <= 1e-6 * d.peak
    return RULE.finding(
        text, t.at(d.reached, -1), t.series.source,
        bearing=Bearing.CAUSE if certain else Bearing.SIGN if whole else Bearing.COMPANION,
        severity=Severity.HIGH if low and (whole or where.known) else Severity.MEDIUM,
        measured=_measured(t, d, where, k, whole, equal, "too-fast"))


def _too_slow(run: Run, t: Track, d: Decay, where: Plan) -> Finding | None:
    k = ratio(d.end, where.end)
    if k < SLOW or d.shape == "quadratic" or (where.known and where.last < where.end - max(1.0, 0.03 * where.end)):
        return None
    whole = round(k) if abs(k - round(k)) <= 2 * WHOLE * k else None
    equal = _equals(run, whole)
    if not where.known and (equal not in (PROCESSES, ACCUMULATION) or len(t) < 20):
        return None  # it may have been stopped early; only the very number of a likely cause speaks against that
    if equal == "number of epochs" or (equal is None and d.shape == "linear" and k < 4):
        return None  # the plan is of one epoch; a linear decay to a share of the peak is in use
    named = f", equal to the {equal}" if equal else ""
    planned = "planned" if where.known else "logged"
    return RULE.finding(
        f"training ends at {t.unit} {where.last:.10g} with the learning rate at {number(float(t.y[-1]))}, "
        f"{100 * ratio(float(t.y[-1]), d.peak):.0f} % of its peak: the {d.shape} decay would end at {d.end:.4g}, "
        f"{k:.3g} times the {planned} {where.end:.10g}{named}", t.at(d.start, -1), t.series.source,
        bearing=Bearing.SIGN if equal and where.known else Bearing.COMPANION, severity=Severity.MEDIUM,
        measured=_measured(t, d, where, 1 / k, whole, equal, "too-slow"))


def _whole_number(end: float, d: Decay, t: Track) -> int | None:
    """The whole k >= 2 that the end of the decay allows, if it is the only one."""
    k = ratio(end, d.end)
    near = round(k)
    if near >= 2 and abs(k - near) <= WHOLE * k:
        return near
    assert d.reached is not None
    least, most = ratio(end, float(t.x[d.reached]) + 1), ratio(end, max(d.before, 1e-9))
    inside = [n for n in range(2, 65) if least <= n <= most]
    return inside[0] if len(inside) == 1 else None


def _equals(run: Run, whole: int | None) -> str | None:
    """What else in this run is equal to k."""
    if whole is None:
        return None
    each, count = steps_per_epoch(run), epochs(run)
    known = {
        PROCESSES: _world_size(run),
        ACCUMULATION: config_number(
            run.config, ("gradient_accumulation_steps", "accumulate_grad_batches", "grad_accum_steps", "accum_steps",
                         "grad_accum", "accumulation_steps", "update_freq", "accumulation")),
        "steps in an epoch": each,
        "number of epochs": count,
    }
    return next((name for name, value in known.items() if value is not None and round(value) == whole), None)


def _world_size(run: Run) -> float | None:
    if run.world_size is not None:
        return float(run.world_size)
    for note in run.notes:
        if found := re.search(r"\b(?:world.?size|num.?processes|processes|gpus|devices|ranks)\b\D{0,3}(\d+)"
                              r"|\b(\d+)\s+(?:processes|gpus|devices|ranks|workers)\b", note.text, re.I):
            return float(found[1] or found[2])
    ranks = {s.rank for s in run.series if s.rank is not None}
    return float(max(ranks) + 1) if ranks else None


def _measured(t: Track, d: Decay, where: Plan, k: float, whole: int | None, equal: str | None,
              kind: str) -> dict[str, float | int | str | bool | None]:
    return {"kind": kind, "k": whole or round(k, 4), "k_measured": k, "integer": whole is not None, "equals": equal,
            "end": d.end, "planned": where.end, "planned_known": where.known, "shape": d.shape, "floor": d.floor,
            "peak": d.peak, "unit": t.unit, "position": d.end, "left": max(0.0, where.last - d.end)}
