"""Runs an experiment: asks the design what is wanted next, has it run where it can do no harm, until it is decided.

Everything that judges is pure (`design.py` and below); here runs are made, kept and written down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from traindx_tools.experiments.arms import MOST_REPEATS, Design, Next, Run, changes, controls
from traindx_tools.experiments.budget import Budget
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.compare import EARLY, look_for
from traindx_tools.experiments.design import enough_for, following, promising
from traindx_tools.experiments.horizon import end_of
from traindx_tools.experiments.journal import Journal
from traindx_tools.experiments.kept import Kept
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.place import Enough, Place, Prepared
from traindx_tools.experiments.trace import Applied, Trace
from traindx_tools.experiments.verdict import Verdict

Prepare = Callable[[Change, int], Prepared]
"""The run with a change (the control has none) and a seed (0: the program's own)."""
Say = Callable[[str], None]
RUNS = "runs"
MEASURED_BY_THE_CLOCK = ("step-time", "memory-growth", "hang")
"""Outcomes that the instruments of another run may have changed."""


@dataclass(frozen=True)
class Made:
    """One run of an experiment and where it came from."""

    run: Run
    key: str = ""
    kept: bool = False
    """It was made before, and taken from the cache."""


@dataclass(frozen=True)
class Result:
    """An experiment that came to its end. `id` is what a diagnosis cites: X001, X002, ..."""

    id: str
    design: Design
    verdict: Verdict
    made: tuple[Made, ...]
    seconds: float = 0.0
    """Of the runs that were made now."""
    budget: float = 0.0
    applied: Applied = field(default_factory=Applied)

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, in the order in which they were made."""
        return tuple(m.run for m in self.made)

    @property
    def took_hold_nowhere(self) -> bool:
        """Whether the change found nothing in this program: the run with it is one more control."""
        changed = [r for r in self.runs if r.changed]
        return not self.verdict.decided and bool(changed) and not any(r.trace.applied.times for r in changed)

    @property
    def wants(self) -> float:
        """Seconds that would be enough to go on, 0 where it is decided or more time would not help."""
        if self.verdict.decided or self.verdict.lacks != "budget":
            return 0.0
        longest = max((r.trace.seconds for r in self.runs), default=60.0)
        return 60.0 * max(1.0, round((self.seconds + 6 * longest) * 2 / 60.0))


@dataclass
class Engine:
    """Where and how runs are made. `kept` None: nothing is kept. `resume`: changed runs of before count as well."""

    place: Place
    prepare: Prepare
    kept: Kept | None = None
    journal: Journal | None = None
    resume: bool = False
    say: Say = lambda _: None
    progress: Say = lambda _: None
    """Told several times a second what the run is at."""
    control: Trace | None = None
    """The program's own run as it was made before, under the instruments: the first control."""

    def experiment(self, change: Change, outcome: Outcome, *, budget: Budget | None = None,
                   repeats: int = MOST_REPEATS, least: float = 0.0, pilot: bool = False,
                   first_seed: int = 0) -> Result:
        """One change, one verdict. Raises BadUsage for a change that cannot be prepared, OSError of a full disk."""
        purse = budget or Budget()
        before = purse.spent
        design = Design(change, outcome, repeats, least, pilot, first_seed)
        self.prepare(change, 0)  # what cannot be prepared is said before the control is run
        name = self._begin(design)
        made: list[Made] = []
        while True:
            runs = [m.run for m in made]
            wanted = following(design, runs)
            if isinstance(wanted, Verdict):
                return self._ended(name, design, wanted, made, purse, before)
            seconds = self._time_for(wanted, runs, design, purse)
            if seconds <= 0:
                verdict = Verdict("inconclusive", f"what is left of the budget ({purse.left:.0f} of "
                                  f"{purse.seconds:.0f} s) is too little after {_counted(runs)}; next would be: "
                                  f"{wanted.name}", lacks="budget")
                return self._ended(name, design, verdict, made, purse, before)
            new = self._made(name, design, runs, wanted, seconds, purse)
            made = [*(m for m in made if (m.run.changed, m.run.seed) != (wanted.changed, wanted.seed)), new]

    def _begin(self, design: Design) -> str:
        if self.journal is None:
            return "X001"
        question = {"change": design.change.to_json(), "outcome": str(design.outcome),
                    "command": self.prepare(Change(), 0).command}
        return self.journal.begin(question, resume=self.resume)

    def _time_for(self, wanted: Next, runs: Sequence[Run], design: Design, purse: Budget) -> float:
        """Seconds for the next run, 0 where what is left is not enough for one like those before."""
        if not runs:
            return purse.for_first_control(event=design.outcome.is_event)
        like = max((r.trace.seconds for r in runs if r.changed == wanted.changed), default=runs[0].trace.seconds)
        needed = like * (EARLY[-1] if _may_end_early(design, runs, wanted) else 1.0)
        left = purse.left if purse.left >= needed or not promising(design, runs) else purse.to_end
        return left if left >= needed else 0.0

    def _made(self, name: str, design: Design, runs: Sequence[Run], wanted: Next, seconds: float,
              purse: Budget) -> Made:
        prepared = self.prepare(design.change if wanted.changed else Change(), wanted.seed)
        enough = enough_for(design, runs, wanted)
        share = seconds
        if not runs and not design.outcome.is_event:
            seconds = max(seconds, purse.left)
        late = shown_by(design.outcome, share) if seconds > share else None
        key = "" if self.kept is None else self.kept.key(self.place.fingerprint, prepared)
        old = self._old(key, wanted, design, runs, share)
        if late is not None and old is not None and not late(old) and old.stopped and old.seconds < 0.9 * seconds:
            old = None  # it was cut off before it showed anything, and there is more time now
        trace = old
        if trace is None:
            self.say(f"{name} run {len(runs) + 1}: {wanted.name}")

            def asked(now: Trace) -> bool:
                self.progress(_progress(name, len(runs) + 1, wanted, now, purse))
                return enough(now) or (late is not None and late(now))

            trace = self.place.run(prepared, asked, seconds=seconds)
            if late is not None and trace.stopped == "decided":
                trace = replace(trace, stopped="time")
            purse.spent += trace.seconds
            if self.kept is not None:
                trace = self.kept.put(key, trace)
        if not wanted.changed and trace.ended and not trace.stopped:
            purse.length = max(purse.length or 0.0, trace.seconds)
        run = Run(wanted.changed, wanted.seed, with_applied(trace, design.change if wanted.changed else Change(),
                                                             prepared))
        self._note(name, run, key, kept=old is not None)
        return Made(run, key, old is not None)

    def _old(self, key: str, wanted: Next, design: Design, runs: Sequence[Run], seconds: float) -> Trace | None:
        """The same run of before, where it came as far as is needed."""
        if self.control is not None and not wanted.changed and wanted.seed == 0 and (
                design.outcome.kind not in MEASURED_BY_THE_CLOCK):
            return self.control
        if self.kept is None or (wanted.changed and not self.resume):
            return None
        trace = self.kept.get(key)
        if trace is None or (trace.ended and not trace.stopped) or enough_for(design, runs, wanted)(trace):
            return trace
        whole = wanted.horizon is None and trace.stopped == "time" and trace.seconds >= 0.9 * seconds
        return trace if whole else None

    def _note(self, name: str, run: Run, key: str, *, kept: bool) -> None:
        if self.journal is None:
            return
        trace = run.trace
        self.journal.add("run", id=name, run=run.name, key=key, kept=kept, seconds=round(trace.seconds, 3),
                         exit_code=trace.exit_code, stopped=trace.stopped, reached=trace.reached,
                         applied=[trace.applied.times, trace.applied.where, trace.applied.problem])

    def _ended(self, name: str, design: Design, verdict: Verdict, made: Sequence[Made], purse: Budget,
               before: float) -> Result:
        applied = next((m.run.trace.applied for m in made if m.run.changed), Applied())
        if self.journal is not None:
            self.journal.add("verdict", id=name, verdict=verdict.to_json(), seconds=round(purse.spent - before, 3))
        return Result(name, design, verdict, tuple(made), purse.spent - before, purse.seconds, applied)


def shown_by(outcome: Outcome, seconds: float) -> Enough:
    """When a first control has had its share of the time: after these seconds, and once it shows a value.

    A program that writes its metrics to a file when it ends shows none before, and is not cut off for that.
    """
    return lambda now: now.seconds >= seconds and end_of(outcome, now) is not None


def _may_end_early(design: Design, runs: Sequence[Run], wanted: Next) -> bool:
    """Whether a large effect can be called before this run has come to the end: then a part of it may decide."""
    if design.outcome.is_event:
        return False
    look = look_for(len(controls(runs)) + (not wanted.changed), len(changes(runs)) + wanted.changed)
    return look is not None and bool(look.ways)


def with_applied(trace: Trace, change: Change, prepared: Prepared) -> Trace:
    """What the change did: told by the process where it takes hold inside, known where it was done before the start."""
    if change.is_control:
        return trace
    inside = [str(c) for c in prepared.inside if c.name == change.name]
    told = next((trace.changes[n] for n in inside if n in trace.changes), None)
    if told is None:
        told = Applied(problem="no process of the run said anything of it: it ended before its first step, or its "
                               "Python started without the instruments") if inside else Applied(1, "before the start")
    if prepared.files and trace.originals:
        names = ", ".join(trace.originals[:3])
        told = Applied(problem=f"the run imports {names} from the folder itself and not from the copy that was changed "
                               "(a path in a script, an environment or an installed package)")
    return replace(trace, applied=told)


def _counted(runs: Sequence[Run]) -> str:
    changed = sum(r.changed for r in runs)
    return f"{len(runs) - changed} controls and {changed} runs with the change"


def _progress(name: str, number: int, wanted: Next, now: Trace, purse: Budget) -> str:
    at = f"step {now.reached:g}" if now.reached is not None else "no step yet"
    to = f" of {wanted.horizon:g}" if wanted.horizon is not None and now.reached is not None else ""
    spent = purse.spent + now.seconds
    return f"{name} run {number} ({wanted.name}): {at}{to}, {now.seconds:.0f} s; {spent:.0f} of {purse.seconds:.0f} s"


def paths(folder: Path) -> tuple[Kept, Journal]:
    """The cache and the journal of a folder of experiments."""
    return Kept(folder / RUNS), Journal(folder)

