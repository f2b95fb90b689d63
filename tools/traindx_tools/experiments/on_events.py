"""The verdict on an event: does it still come with the change, at another step, or no more?

One changed run that shows it at the same step as the control decides that the change does nothing. That it is gone, or
comes at another step, needs the other seeds: a change that draws other random numbers may be without it by luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from traindx_tools.experiments.arms import Design, Next, Run, changes, controls, hindered, wanted
from traindx_tools.experiments.compare import difference, look_for, separated
from traindx_tools.experiments.horizon import beyond
from traindx_tools.experiments.level import FLOOR
from traindx_tools.experiments.reading import Measured, Seen, event
from traindx_tools.experiments.verdict import Verdict, Word

ONSET_SCALE = math.log(1.25) / FLOOR
"""Of an onset's logarithm: two that differ by less than a quarter are not told apart, by half it may have moved."""
CONTROLS_TO_SHOW = 3
"""Controls (with other seeds) that may fail to show the event before it counts as not reproduced."""


def judge(design: Design, runs: Sequence[Run]) -> Verdict | Next:
    """The verdict, or the run that is needed for it."""
    old = [event(design.outcome, r.trace) for r in controls(runs)]
    unfinished = [r for r in controls(runs) if r.trace.stopped == "time" and not event(design.outcome, r.trace).there]
    if not any(s.there for s in old):
        return _not_shown(design, runs, unfinished)
    first = next(s for s in old if s.there)
    horizon = max(beyond(max(s.at for s in old if s.there)), design.least if first.unit == "step" else 0.0)
    if hindered(design, runs):
        return Verdict("inconclusive", hindered(design, runs), unit=first.unit, at=horizon)
    short = [r for r in changes(runs) if _short(design, r, horizon, first.unit)]
    again = next((r for r in short if r.trace.stopped == "decided"), None)
    if again is not None:  # a placebo showed it later than the control: the changed run has to go further
        return Next(True, again.seed, horizon, first.unit)
    if short:
        seen = event(design.outcome, short[0].trace)
        return Verdict("inconclusive", f"the run with the change came only to {first.unit} {seen.at:g} of the "
                       f"{horizon:g} that it has to be without the symptom", lacks="budget", unit=first.unit,
                       at=horizon)
    new = [event(design.outcome, r.trace) for r in changes(runs)]
    onset = min(s.at for s in old if s.there)
    early = next((s for s in new if first.unit == "step" and not s.there and s.at < onset), None)
    if early is not None:
        return Verdict("inconclusive", f"the run with the change ended at step {early.at:g}, before step {onset:g} at "
                       "which the symptom comes without it: it cannot have shown it", unit=first.unit, at=horizon)
    found = _decided(old, new, horizon)
    if found is not None:
        return found
    if design.pilot and len(old) == len(new) == 1 and new[0].there:
        return Verdict("inconclusive", f"the first run with the change shows it as well, at {_at(new[0])}: not gone on "
                       "with", unit=first.unit, at=horizon)
    following = wanted(design, runs)
    if following is None:
        return _open(old, new, horizon, first)
    changed, seed = following
    return Next(changed, seed, horizon, first.unit)


def _not_shown(design: Design, runs: Sequence[Run], unfinished: Sequence[Run]) -> Verdict | Next:
    done = controls(runs)
    if unfinished:
        trace = unfinished[0].trace
        where = f"step {trace.reached:g}" if trace.reached is not None else f"{trace.seconds:.0f} s"
        return Verdict("inconclusive", f"the control does not show {design.outcome.said} up to {where}, where the time "
                       "was up", lacks="budget")
    if len(done) < min(CONTROLS_TO_SHOW, design.repeats):
        return Next(False, design.first_seed + len(done))
    return Verdict("inconclusive", f"not reproduced: {len(done)} controls end without {design.outcome.said}")


def _short(design: Design, run: Run, horizon: float, unit: str) -> bool:
    """Whether it was cut off before its horizon without having shown anything."""
    seen = event(design.outcome, run.trace)
    if seen.there or (run.trace.ended and not run.trace.stopped):
        return False
    return (run.trace.seconds if unit == "second" else seen.at) < horizon


def _decided(old: Sequence[Seen], new: Sequence[Seen], horizon: float) -> Verdict | None:
    there = [s.there for s in old]
    onsets = [s.at for s in old if s.there]
    if len(new) == 1 and new[0].there and min(onsets) <= new[0].at <= max(onsets):
        return _verdict("no-effect", old, new, horizon, f"it comes with the change as without it, at {_at(new[0])}: "
                        f"{new[0].said}")
    if separated(there, [s.there for s in new]):
        word = f"{sum(there)} of {len(old)} controls show it (first at {_at(old[0])}), "
        end = min([horizon, *(s.at for s in new if not s.there and old[0].unit == "step")])
        return _verdict("removes", old, new, horizon, word + f"{sum(s.there for s in new)} of {len(new)} runs with the "
                        f"change do up to {old[0].unit} {end:g}", better=True)
    return _moved(old, new, horizon)


def _moved(old: Sequence[Seen], new: Sequence[Seen], horizon: float) -> Verdict | None:
    """Whether the onset moved: its logarithm is compared, as what delays an event does so by a factor."""
    look = look_for(len(old), len(new))
    if look is None or not all(s.there for s in (*old, *new)):
        return None
    before, after = ([Measured(math.log1p(s.at), 0.0, ONSET_SCALE) for s in arm] for arm in (old, new))
    found = difference(before, after, look.alpha)
    if found.is_none:
        return _verdict("no-effect", old, new, horizon, f"it comes in all {len(new)} runs with the change too, and its "
                        f"onset stays: {old[0].unit} {_mean(old)} without, {_mean(new)} with it")
    later = found.value > 0
    if not found.is_effect or ("better" if later else "worse") not in look.ways:
        return None
    return _verdict("moves", old, new, horizon, f"it comes {'later' if later else 'earlier'}: at {old[0].unit} "
                    f"{_mean(old)} without, {_mean(new)} with the change, in all {len(new)} runs", better=later)


def _open(old: Sequence[Seen], new: Sequence[Seen], horizon: float, first: Seen) -> Verdict:
    if len(new) >= CONTROLS_TO_SHOW and all(s.there for s in (*old, *new)):
        return _verdict("no-effect", old, new, horizon, f"it comes in all {len(new)} runs with the change too; its "
                        f"onset ({old[0].unit} {_mean(old)} without, {_mean(new)} with it) moves no more than chance "
                        "does")
    counts = (f"{sum(s.there for s in old)} of {len(old)} controls and {sum(s.there for s in new)} of {len(new)} runs "
              "with the change show it")
    return _verdict("inconclusive", old, new, horizon, f"{counts}: chance does as much", lacks="repeats")


def _verdict(word: Word, old: Sequence[Seen], new: Sequence[Seen], horizon: float, why: str, *,
             better: bool | None = None, lacks: str = "") -> Verdict:
    told = [tuple(s.at if s.there else math.inf for s in arm) for arm in (old, new)]
    unit = next((s.unit for s in old if s.there), "step")
    return Verdict(word, why, better, told[0], told[1], at=horizon, unit=unit, lacks=lacks)


def _at(seen: Seen) -> str:
    return f"{seen.unit} {seen.at:g}"


def _mean(arm: Sequence[Seen]) -> str:
    return f"{fmean(s.at for s in arm):.4g}"
