"""The verdict on a number: where the runs with the change lie against the spread of the controls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from traindx_tools.experiments.arms import Design, Next, Run, changes, controls, hindered, wanted
from traindx_tools.experiments.compare import LOOKS, Difference, Look, apart, difference, look_for, separated
from traindx_tools.experiments.horizon import end_of, has_come_to, positions
from traindx_tools.experiments.reading import Measured, is_well, number, only_value, said_of, without_value
from traindx_tools.experiments.verdict import Verdict, Word

LEAST_RATIO = 1.5
"""From here on the arms are told as times of each other as well."""
GONE = 0.2
"""Share of a gap, a rise or a growth that may be left where it counts as removed."""


def judge(design: Design, runs: Sequence[Run]) -> Verdict | Next:
    """The verdict, or the run that is needed for it. The last run may still be going on."""
    old = controls(runs)
    if not old:
        return Next(False, design.first_seed)
    horizon = end_of(design.outcome, old[0].trace)
    if horizon is None:
        return Verdict("inconclusive", without_value(design.outcome, old[0].trace),
                       lacks="budget" if old[0].trace.stopped == "time" else "")
    places = positions(design.outcome, old[0].trace, horizon, design.least)
    healthy = _healthy(design, old[0], horizon)
    if not places or healthy:
        single = only_value(design.outcome, old[0].trace)
        lacks = "budget" if old[0].trace.stopped == "time" else "symptom" if healthy or single else ""
        few = ("has one value alone in the control, which neither rises nor falls" if single else
               "has too few records to be read in the control")
        return Verdict("inconclusive", healthy or f"{design.outcome.said} {few}", at=horizon, lacks=lacks)
    if hindered(design, runs):
        return Verdict("inconclusive", hindered(design, runs), at=horizon)
    found = next((v for at in places for v in [_at(design, runs, at, early=at != horizon)] if v is not None), None)
    if found is not None:
        return found
    cut = [r for r in runs[1:] if not has_come_to(design.outcome, r.trace, horizon)]
    if cut and cut[0].trace.stopped == "time":
        return Verdict("inconclusive", f"the run ({cut[0].name}) did not come to step {horizon:g} in the time there "
                       "was", at=horizon, lacks="budget")
    if design.pilot and (why := _no_better(design, runs, horizon)):
        return Verdict("inconclusive", why, at=horizon)
    following = wanted(design, runs)
    if following is None:
        return _open(design, runs, horizon)
    return Next(*following, horizon)


def _no_better(design: Design, runs: Sequence[Run], horizon: float) -> str:
    """Why the first pair of runs gives no reason to go on, "" where it does."""
    if (len(controls(runs)), len(changes(runs))) != (1, 1):
        return ""
    old, new = _read(design, controls(runs), horizon), _read(design, changes(runs), horizon)
    if not old or not new:
        return ""
    before, after = old[0].value, new[0].value
    gain = (after - before) if design.outcome.up else (before - after)
    room = apart(old[0], new[0])
    if (not math.isfinite(before) and math.isfinite(after)) or gain > room:
        return ""
    why = "no better" if not gain > 0 else (
        f"better by {gain:.3g}, and two runs are told apart from {room:.3g} on")
    return (f"{design.outcome.said} is {after:.4g} in the first run with the change and {before:.4g} without it: "
            f"{why}; not gone on with")


def _healthy(design: Design, control: Run, horizon: float) -> str:
    """Why the control does not show the symptom at all, "" where it does or nothing says what is well."""
    seen = number(design.outcome, control.trace, horizon)
    if seen is None or not math.isfinite(seen.value):
        return ""
    return (f"the control does not show it: {design.outcome.said} is {seen.value:.4g} up to step {horizon:g}"
            if is_well(design.outcome, seen) else "")


def _read(design: Design, runs: Sequence[Run], at: float) -> list[Measured] | None:
    """The number of each run at a position, None where one cannot be read there yet."""
    found = [number(design.outcome, r.trace, at) for r in runs if has_come_to(design.outcome, r.trace, at)]
    told = [m for m in found if m is not None]
    return told if len(told) == len(runs) else None


def _at(design: Design, runs: Sequence[Run], at: float, *, early: bool) -> Verdict | None:
    """What can be said at one position, None where nothing can yet."""
    counts = len(controls(runs)), len(changes(runs))
    look = look_for(*counts)
    if look is None and (early or counts != (1, 1)):
        return None
    old, new = _read(design, controls(runs), at), _read(design, changes(runs), at)
    if not old or not new:
        return None
    if len(new) == 1 and old[0].mark and old[0].mark == new[0].mark and not early:
        return _verdict("no-effect", old, new, at, "with the change the run is bit for bit the same up to "
                        f"step {at:g} ({design.outcome.said}: {old[0].value:.4g})")
    if not all(math.isfinite(m.value) for m in (*old, *new)):
        return _by_finiteness(design, old, new, at)
    return None if look is None else _by_difference(
        design, old, new, at, look, said_of(design.outcome, controls(runs)[0].trace), early=early)


def _by_difference(design: Design, old: Sequence[Measured], new: Sequence[Measured], at: float, look: Look,
                   said: str, *, early: bool) -> Verdict | None:
    found = difference(old, new, look.early if early else look.alpha)
    told = f"{said}: {_mean(old)} in {len(old)} controls, {_mean(new)} in {len(new)} with the change"
    better = (found.value > 0) == design.outcome.up
    if found.is_effect and ("better" if better else "worse") in look.ways:
        gone = better and _gone(design, old, new)
        why = f"{told}, {_times(old, new)}{abs(found.value):.3g} {'better' if better else 'worse'}{_chance(found)}"
        return _verdict("removes" if gone else "moves", old, new, at, why, better=better, found=found)
    if found.is_none and not early:
        return _verdict("no-effect", old, new, at, f"{told}: the difference is {found.value:.3g} (between "
                        f"{found.low:.3g} and {found.high:.3g}), less than {found.margin:.3g}", found=found)
    if found.is_small and not early and look.ways:
        return _verdict("inconclusive", old, new, at, f"{told}: surely {'better' if better else 'worse'} "
                        f"({found.distance:.1f} times the spread of a run), but by {abs(found.value):.3g}, too little "
                        "to be the symptom", better=better, found=found)
    return None


def _gone(design: Design, old: Sequence[Measured], new: Sequence[Measured]) -> bool:
    """Whether what is left of the symptom is none."""
    if design.outcome.bound is not None:
        return all(is_well(design.outcome, m) for m in new)
    if design.outcome.kind not in ("gap", "rise", "memory-growth"):
        return False
    return fmean(m.value for m in new) <= GONE * fmean(m.value for m in old)


def _by_finiteness(design: Design, old: Sequence[Measured], new: Sequence[Measured], at: float) -> Verdict | None:
    """Runs that end in NaN have no number: they are counted."""
    bad, worse = ([not math.isfinite(m.value) for m in arm] for arm in (old, new))
    counts = f"{sum(bad)} of {len(bad)} controls and {sum(worse)} of {len(worse)} runs with the change end in NaN"
    if separated(bad, worse):
        return _verdict("removes", old, new, at, counts, better=True)
    if len(bad) >= 4 and not any(bad) and len(worse) >= 4 and all(worse):
        return _verdict("moves", old, new, at, counts, better=False)
    return None


def _open(design: Design, runs: Sequence[Run], at: float) -> Verdict:
    old, new = _read(design, controls(runs), at), _read(design, changes(runs), at)
    if not old or not new or not all(math.isfinite(m.value) for m in (*old, *new)):
        return Verdict("inconclusive", "not every run shows the number", at=at, lacks="repeats")
    found = difference(old, new, LOOKS[-1].alpha)
    return _verdict("inconclusive", old, new, at, f"{design.outcome.said}: {_mean(old)} in {len(old)} controls, "
                    f"{_mean(new)} in {len(new)} with the change: the effect lies between {found.low:.3g} and "
                    f"{found.high:.3g}, the spread of a run is {found.spread:.3g}", found=found, lacks="repeats")


def _verdict(word: Word, old: Sequence[Measured], new: Sequence[Measured], at: float, why: str, *,
             better: bool | None = None, found: Difference | None = None, lacks: str = "") -> Verdict:
    told = [tuple(m.value for m in arm) for arm in (old, new)]
    verdict = Verdict(word, why, better, told[0], told[1], at=at, lacks=lacks)
    return verdict if found is None else replace(verdict, effect=found.value, low=found.low, high=found.high,
                                                 spread=found.spread)


def _chance(found: Difference) -> str:
    if found.spread == 0:
        return "; no two controls differ, one record scatters less"
    return f" (between {min(abs(found.low), abs(found.high)):.3g} and {max(abs(found.low), abs(found.high)):.3g}; " \
           f"{found.distance:.1f} times the spread of a run, {found.spread:.3g})"


def _times(old: Sequence[Measured], new: Sequence[Measured]) -> str:
    """How many times of each other the arms are, where that says something: `31 times as large, `."""
    before, after = fmean(m.value for m in old), fmean(m.value for m in new)
    if before * after <= 0 or not math.isfinite(after / before):
        return ""
    ratio = after / before
    if LEAST_RATIO > ratio > 1 / LEAST_RATIO:
        return ""
    return f"{ratio:.3g} times as large, " if ratio > 1 else f"{1 / ratio:.3g} times as small, "


def _mean(arm: Sequence[Measured]) -> str:
    return f"{fmean(m.value for m in arm):.4g}"
