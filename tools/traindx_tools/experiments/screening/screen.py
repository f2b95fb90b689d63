"""Runs a screen: the control, then each arm once, then what stands out again with other seeds, within one budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.arms import MOST_REPEATS
from traindx_tools.experiments.budget import Budget
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.experiment import Engine, Result, shown_by, with_applied
from traindx_tools.experiments.horizon import beyond, end_of
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.place import Enough
from traindx_tools.experiments.preparing import least_steps
from traindx_tools.experiments.reading import event, number, without_value
from traindx_tools.experiments.screening.arms import Arm
from traindx_tools.experiments.screening.judging import UNREAD, Judged, judged
from traindx_tools.experiments.trace import Trace

MOST_CONFIRMED = 3
"""Arms that are tried again: where more stand out, the best three tell as much."""
CONFIRMING = 4
"""Runs that a confirmation takes at least: two more controls and two with the change."""
SECONDS = 600.0
"""For a whole screen, where nothing else is asked for."""


Arrange = Callable[[Sequence[Arm], Trace], Sequence[Arm]]


@dataclass(frozen=True)
class Tried:
    """One arm, its run and what it came to. `problem`: why it was not run."""

    arm: Arm
    trace: Trace | None = None
    judged: Judged = UNREAD
    problem: str = ""


@dataclass(frozen=True)
class Screened:
    """A screen that came to its end. `id` is what a diagnosis cites."""

    id: str
    outcome: Outcome
    control: Trace
    at: float | None
    tried: tuple[Tried, ...]
    left: tuple[Arm, ...]
    """What the budget did not allow."""
    confirmed: tuple[Result, ...]
    """The experiments on what stands out, the best first."""
    seconds: float
    budget: float
    problem: str = ""
    """Why nothing could be screened, "" where it could."""

    @property
    def standing_out(self) -> list[Tried]:
        """Arms that are better than the control beyond chance, the best first."""
        found = [t for t in self.tried if t.judged.word in ("goes", "better")]
        return sorted(found, key=lambda t: (t.judged.word != "goes", -abs(t.judged.gain), t.arm.said))

    @property
    def value(self) -> float | None:
        """The outcome's number in the control, of an event the step of its onset; None where it has no finite one."""
        if self.outcome.is_event:
            seen = event(self.outcome, self.control)
            return seen.at if seen.there and math.isfinite(seen.at) else None
        read = number(self.outcome, self.control, self.at)
        return None if read is None or not math.isfinite(read.value) else read.value


def screen(engine: Engine, arms: Sequence[Arm], outcome: Outcome, budget: Budget | None = None,
           arrange: Arrange | None = None) -> Screened:
    """One run of each arm while there is time, and an experiment on each that stands out. `arrange`: the order in which
    they are tried, from what the run as it is shows.

    Raises BadUsage where there is nothing to try, OSError of a full disk.
    """
    if not arms:
        raise BadUsage("there is nothing to screen: no setting, no group of like files and no stage of this program "
                       "was found; name a change with --change")
    return _Screen(engine, tuple(arms), outcome, budget or Budget(SECONDS), arrange).done()


@dataclass
class _Screen:
    engine: Engine
    arms: tuple[Arm, ...]
    outcome: Outcome
    purse: Budget
    arrange: Arrange | None = None

    def done(self) -> Screened:
        name = self._begun()
        before = self.purse.spent
        control = self._control(name)
        at = None if self.outcome.is_event else end_of(self.outcome, control)
        problem = self._problem(control, at)
        if self.arrange is not None and not problem:
            self.arms = tuple(self.arrange(self.arms, control))
        tried: list[Tried] = []
        left: list[Arm] = []
        for place, arm in enumerate(() if problem else self.arms):
            if self._time_is_up(control, tried, at):
                left = list(self.arms[place:])
                break
            tried.append(self._tried(name, arm, control, at, len(tried) + 1))
        told = self._judged(control, tried, at)
        screened = Screened(name, self.outcome, control, at, tuple(told), tuple(left), (), 0.0, self.purse.seconds,
                            problem)
        confirmed = tuple(self._confirmed(screened))
        return replace(screened, confirmed=confirmed, seconds=self.purse.spent - before)

    def _begun(self) -> str:
        if self.engine.journal is None:
            return "X001"
        question = {"screen": [a.change.to_json() for a in self.arms], "outcome": str(self.outcome),
                    "command": self.engine.prepare(Change(), 0).command}
        return self.engine.journal.begin(question, resume=self.engine.resume)

    def _control(self, name: str) -> Trace:
        if self.engine.control is not None:
            return self.engine.control
        share = self.purse.for_first_control(event=self.outcome.is_event)
        if self.outcome.is_event:
            return self._run(name, "control", Change(), lambda _: False, share)
        # what it writes to a file at its end is seen then: until something is, it has all the time there is
        trace = self._run(name, "control", Change(), shown_by(self.outcome, share), self.purse.left)
        return replace(trace, stopped="time") if trace.stopped == "decided" else trace

    def _problem(self, control: Trace, at: float | None) -> str:
        if self.outcome.is_event:
            return "" if event(self.outcome, control).there else (
                f"the control does not show it: {self.outcome.said}")
        if at is None or number(self.outcome, control, at) is None:
            return without_value(self.outcome, control)
        return ""

    def _tried(self, name: str, arm: Arm, control: Trace, at: float | None, count: int) -> Tried:
        seconds = min(self.purse.left, 3.0 * control.seconds + 10.0)
        try:
            why = f" ({arm.why})" if arm.why else ""
            trace = self._run(name, f"{count} of {len(self.arms)}: {arm.said}{why}", arm.change,
                              self._enough(control, at), seconds)
        except BadUsage as error:
            return Tried(arm, problem=str(error))
        return Tried(arm, trace)

    def _enough(self, control: Trace, at: float | None) -> Enough:
        if not self.outcome.is_event:
            end = math.inf if at is None else at

            def come(now: Trace) -> bool:
                reached = end_of(self.outcome, now)
                return reached is not None and reached >= end

            return come
        onset = event(self.outcome, control)
        far = beyond(onset.at)

        def shown(now: Trace) -> bool:
            seen = event(self.outcome, now)
            return seen.there or (now.seconds if onset.unit == "second" else seen.at) >= far

        return shown

    def _run(self, name: str, said: str, change: Change, enough: Enough, seconds: float) -> Trace:
        """One run, from the cache where it was made before."""
        engine = self.engine
        prepared = engine.prepare(change, 0)
        key = "" if engine.kept is None else engine.kept.key(engine.place.fingerprint, prepared)
        old = None if engine.kept is None or not (change.is_control or engine.resume) else engine.kept.get(key)
        if old is not None and (enough(old) or (old.ended and not old.stopped)):
            return with_applied(old, change, prepared)
        engine.say(f"{name} {said}")

        def asked(now: Trace) -> bool:
            spent = self.purse.spent + now.seconds
            engine.progress(f"{name} {said}: {now.seconds:.0f} s; {spent:.0f} of {self.purse.seconds:.0f} s")
            return enough(now)

        trace = engine.place.run(prepared, asked, seconds=seconds)
        self.purse.spent += trace.seconds
        if engine.kept is not None:
            trace = engine.kept.put(key, trace)
        if engine.journal is not None:
            engine.journal.add("run", id=name, run=said, key=key, kept=False, seconds=round(trace.seconds, 3),
                               exit_code=trace.exit_code, stopped=trace.stopped, reached=trace.reached)
        return with_applied(trace, change, prepared)

    def _judged(self, control: Trace, tried: Sequence[Tried], at: float | None) -> list[Tried]:
        run = [t.trace for t in tried if t.trace is not None]
        words = iter(judged(self.outcome, control, run, at))
        return [t if t.trace is None else replace(t, judged=next(words)) for t in tried]

    def _time_is_up(self, control: Trace, tried: Sequence[Tried], at: float | None) -> bool:
        """Time for one more run is wanted, and for a confirmation where something stands out."""
        runs = self.purse.left / max(control.seconds, 1e-9)
        if runs < 1 or runs >= 1 + CONFIRMING:
            return runs < 1
        return any(t.judged.word in ("goes", "better") for t in self._judged(control, tried, at))

    def _confirmed(self, screened: Screened) -> list[Result]:
        found: list[Result] = []
        for one in screened.standing_out[:MOST_CONFIRMED]:
            if self.purse.left < screened.control.seconds:
                break
            found.append(self.engine.experiment(one.arm.change, self.outcome, budget=self.purse, repeats=MOST_REPEATS,
                                                least=least_steps(one.arm.change), first_seed=1))
        return found
