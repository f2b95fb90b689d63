"""The verdict on a number: where the runs with the change lie against the spread of the controls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from traindx_tools.experiments.arms import Design, Next, Run, changes, controls, hindered, wanted
from traindx_tools.experiments.compare import LOOKS, Difference, Look, apart, difference, look_for, separated
from traindx_tools.experiments.horizon import end_of, has_come_to, positions
from traindx_tools.experiments.outcome import Outcome, better_high
from traindx_tools.experiments.reading import (
    Measured,
    at_its_cost,
    counted_otherwise,
    is_well,
    number,
    only_value,
    said_of,
    shared_by,
    short_of_best,
    without_value,
)
from traindx_tools.experiments.trace import Trace
from traindx_tools.experiments.trend import Reference, may_rescale
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
    hindrance = hindered(design, runs) or next((w for r in changes(runs) if (
        w := counted_otherwise(design.outcome, old[0].trace, r.trace, edited=design.change.name == "edit"))), "")
    if hindrance:
        return Verdict("inconclusive", hindrance, at=horizon)
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
    by = shared(design.outcome, runs, horizon)
    old, new = (_read(design, arm, horizon, by) for arm in (controls(runs), changes(runs)))
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


def is_better(design: Design, runs: Sequence[Run]) -> bool:
    """Whether of a first pair of runs the one with the change is better, by more than two runs are told apart from."""
    horizon = end_of(design.outcome, controls(runs)[0].trace)
    if horizon is None or hindered(design, runs):
        return False
    by = shared(design.outcome, runs, horizon)
    read = [_read(design, arm, horizon, by) for arm in (controls(runs), changes(runs))]
    return all(read) and not _no_better(design, runs, horizon)


def _healthy(design: Design, control: Run, horizon: float) -> str:
    """Why the control does not show the symptom at all, "" where it does or nothing says what is well."""
    seen = number(design.outcome, control.trace, horizon)
    if seen is None or not math.isfinite(seen.value):
        return ""
    return (f"the control does not show it: {design.outcome.said} is {seen.value:.4g} up to step {horizon:g}"
            if is_well(design.outcome, seen) else "")


def shared(outcome: Outcome, runs: Sequence[Run], at: float | None) -> Reference | None:
    """What the trends of all these runs are measured by: the first control's start, where it is a trend."""
    traces = [r.trace for r in (*controls(runs), *changes(runs))]
    return shared_by(outcome, traces, at) if traces else None


def _read(design: Design, runs: Sequence[Run], at: float, by: Reference | None) -> list[Measured] | None:
    """The number of each run at a position, None where one cannot be read there yet."""
    found = [number(design.outcome, r.trace, at, by) for r in runs if has_come_to(design.outcome, r.trace, at)]
    told = [m for m in found if m is not None]
    return told if len(told) == len(runs) else None


def _at(design: Design, runs: Sequence[Run], at: float, *, early: bool) -> Verdict | None:
    """What can be said at one position, None where nothing can yet."""
    counts = len(controls(runs)), len(changes(runs))
    look = look_for(*counts)
    if look is None and (early or counts != (1, 1)):
        return None
    by = shared(design.outcome, runs, at)
    told = _told(design, runs, at, look, by, early=early)
    if told is None or by is None or not told.decided or not _another_quantity(design, runs):
        return told
    own = _told(design, runs, at, look, None, early=early)
    return told if own is not None and (own.word, own.better) == (told.word, told.better) else None


def _told(design: Design, runs: Sequence[Run], at: float, look: Look | None, by: Reference | None, *,
          early: bool) -> Verdict | None:
    old, new = _read(design, controls(runs), at, by), _read(design, changes(runs), at, by)
    if not old or not new:
        return None
    if len(new) == 1 and old[0].mark and old[0].mark == new[0].mark and not early:
        return _verdict("no-effect", old, new, at, "with the change the run is bit for bit the same up to "
                        f"step {at:g} ({design.outcome.said}: {old[0].value:.4g})")
    if not all(math.isfinite(m.value) for m in (*old, *new)):
        return _by_finiteness(design, old, new, at)
    if look is None:
        return None
    found = _by_difference(design, old, new, at, look, said_of(design.outcome, controls(runs)[0].trace), early=early)
    if found is None or not (found.is_effect and found.better):
        return found
    return _with_cost(found, design.outcome, runs, at, early=early)


def _with_cost(found: Verdict, outcome: Outcome, runs: Sequence[Run], at: float, *, early: bool) -> Verdict | None:
    """A curve that neither rises nor jumps because less is learned: a symptom that is less, and no cause shown."""
    old, new = ([r.trace for r in arm] for arm in (controls(runs), changes(runs)))
    cost = at_its_cost(outcome, old, new, at)
    if cost:
        return None if early else replace(found, word="inconclusive", better=None, why=f"{found.why}; but {cost}")
    short = short_of_best(outcome, old, new, at, GONE) if found.word == "removes" else ""
    return replace(found, word="moves", why=f"{found.why}; {short}") if short else found


def _another_quantity(design: Design, runs: Sequence[Run]) -> bool:
    """Whether the change may have counted a loss otherwise: where it starts says little of what was learned then."""
    if better_high(design.outcome.metric):
        return False
    first: Trace = controls(runs)[0].trace
    return any(may_rescale(design.change.name, first, r.trace) for r in changes(runs))


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
    if design.outcome.kind == "spike" and all(is_well(design.outcome, m) for m in new):
        return True
    if design.outcome.kind not in ("gap", "rise", "spike", "memory-growth"):
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
    by = shared(design.outcome, runs, at)
    old, new = (_read(design, arm, at, by) for arm in (controls(runs), changes(runs)))
    if not old or not new or not all(math.isfinite(m.value) for m in (*old, *new)):
        return Verdict("inconclusive", "not every run shows the number", at=at, lacks="repeats")
    found = difference(old, new, LOOKS[-1].alpha)
    if by is not None and found.is_effect and _another_quantity(design, runs):
        return _verdict("inconclusive", old, new, at, f"{design.outcome.said}, from where the control starts: "
                        f"{_mean(old)} in {len(old)} controls, {_mean(new)} in {len(new)} with the change; from each "
                        "run's own start it is otherwise, and the change may count the loss otherwise: name a score "
                        "that does not depend on it", found=found)
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
