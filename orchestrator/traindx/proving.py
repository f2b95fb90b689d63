"""`diagnose --run` after its first look: experiments that decide between the hypotheses, the most telling first.

What is tried follows from what is believed (`experiments/plan.py`), one change at a time, each in a protected copy. It
ends when one cause is proven, when nothing is left that would tell more, or when the budget is spent.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from traindx import next_steps
from traindx.by_setting import PART, by_settings, settings_in
from traindx.decidable import beliefs_about, fitting_decisions, why_chosen
from traindx.diagnose import Report
from traindx.diffs import diff_of_edits
from traindx.experiment_place import ProtectedPlace
from traindx.experiments import reads_log, written
from traindx.joining import joined
from traindx.notices import Say, begun, unsaid
from traindx.proposal import edits_of
from traindx.screening import makeable, write_screen
from traindx_tools import triage, unlinked
from traindx_tools.catalog.catalog import FailureMode
from traindx_tools.catalog.experiment_entries import decided
from traindx_tools.errors import BadUsage
from traindx_tools.experiments.budget import Budget
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.choosing import choose
from traindx_tools.experiments.experiment import Engine, Result, paths
from traindx_tools.experiments.finding import finding_of
from traindx_tools.experiments.interventions import with_words
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.plan import Choice, Decision, with_seen
from traindx_tools.experiments.plan import choose as next_experiment
from traindx_tools.experiments.preparing import least_steps, preparing
from traindx_tools.experiments.reading import event, number
from traindx_tools.experiments.screening.arms import CODE, arms_of
from traindx_tools.experiments.screening.screen import screen
from traindx_tools.experiments.screening.settings import Setting
from traindx_tools.experiments.screening.telling import findings_of
from traindx_tools.experiments.trace import Trace
from traindx_tools.experiments.watch import curves_of
from traindx_tools.finding import Finding, Severity

MOST_EXPERIMENTS = 4
"""Of one diagnosis: what four changes do not decide wants a person or an agent."""
MOST_VAIN = 2
"""First runs with a change that were no better than the control: a third guess is seldom better founded."""
LEAST_SCREENED = 10.0
"""Runs that the budget has to allow before everything is changed, one at a time: the default one never does."""
SPENT = "The budget of "
"""Begins the sentence that says what the budget left out."""
ROOM = 1.5
"""Times what experiments are expected to take that a budget for them is: a control may be repeated."""


@dataclass(frozen=True)
class Proved:
    """The experiments that were made, as findings and as files, and why no further one was."""

    results: tuple[Result, ...]
    findings: tuple[Finding, ...]
    outcome: Outcome | None
    ended: str
    chosen: tuple[str, ...] = ()
    """Why each was made, in words."""

    @property
    def note(self) -> str:
        """For a person: what was tried, and why it ended."""
        if self.outcome is None or not self.results:
            return f"No experiment was made. {self.ended}" if self.ended else ""
        tried = "; ".join(f.statement for f in self.findings)
        count = "1 experiment" if len(self.results) == 1 else f"{len(self.results)} experiments"
        chosen = f" Chosen: {'; '.join(self.chosen)}." if self.chosen else ""
        return f"{count} on {self.outcome.said}: {tried}.{chosen} {self.ended}"


def proven(report: Report) -> bool:
    """Whether a cause was seen in the run itself: nothing is left to be decided."""
    first = report.seen.verdict.hypotheses[:1]
    return report.status == "diagnosis_complete" and bool(first) and first[0].proven


def decidable(report: Report) -> bool:
    """Whether a run has something to be decided: no cause was seen in it, and it is not healthy."""
    return not proven(report) and report.status != "healthy"


def with_experiments(report: Report, command: str, workspace: Path, folder: Path, run_seconds: float,
                     budget: float | None = None, say: Say = unsaid, control: Trace | None = None, *,
                     screens: bool = True) -> Report:
    """The report with what experiments decided. `run_seconds`: what the run took; `budget`: seconds, None: the default.

    `control`: that run as an experiment reads it, which saves one of the controls. `screens`: whether a budget that is
    given may also go into changing everything, one at a time; the default one never does.

    A run that shows nothing wrong is left alone, and so is one whose cause was seen in the run.
    """
    if not decidable(report):
        return report
    outcome = choose(report.seen.symptom, report.seen.run, report.seen.findings, control)
    if not measurable(outcome, report, control):
        note = f"no experiment was made: the record of this run shows no value of {outcome.said}"
        return replace(report, remarks=(*report.remarks, note))
    if budget is None and control is not None and _stops_unsuspected(report, control):
        note = (f"no experiment was made: the program stops before its first step ({control.broke}), and nothing that "
                "was read speaks for a cause that a change of the training would undo")
        return replace(report, remarks=(*report.remarks, note))
    unlinked.made(folder)
    kept, journal = paths(folder)
    place = ProtectedPlace(workspace, folder / "copies", reads_log=reads_log(outcome))
    engine = Engine(place, preparing(command, workspace), kept, journal, resume=True, say=say, control=control)
    purse = Budget(budget, length=run_seconds)
    planned = Planned(report, engine, outcome, purse, folder, run_seconds, say, command, workspace,
                      screens=screens and budget is not None)
    return planned.done()


def _stops_unsuspected(report: Report, control: Trace) -> bool:
    """Whether a run broke before anything was measured in it, and hints alone speak for what could be tried."""
    if not control.broke or control.reached is not None:
        return False
    return not any(w.role in ("cause", "sign") for h in report.seen.verdict.hypotheses for w in h.speaks_for)


def measurable(outcome: Outcome, report: Report, control: Trace | None = None) -> bool:
    """Whether this run's own record shows what would be measured: else each control would be made for nothing."""
    if outcome.is_event and control is not None and outcome.kind != "hang":
        return event(outcome, control).there
    if outcome.is_event or outcome.kind in ("step-time", "memory-growth") or not outcome.metric:
        return True
    if control is not None and number(outcome, control) is not None:
        return True
    return number(outcome, Trace(Path(), curves_of(report.seen.run), ended=True)) is not None


@dataclass
class Planned:
    """One diagnosis that is being decided by experiments; `done` gives the report with what they decided."""

    report: Report
    engine: Engine
    outcome: Outcome
    purse: Budget
    folder: Path
    run_seconds: float
    say: Say
    command: str
    workspace: Path
    screens: bool = True
    _nowhere: set[str] = field(default_factory=set)
    """Names of changes that took hold nowhere in this program."""

    def done(self) -> Report:
        """Makes experiments until it is decided."""
        results: list[Result] = []
        findings: list[Finding] = []
        tried: set[str] = set()
        whys: list[str] = []
        ended = ""
        while not ended:
            choice = self._choice(tried)
            if choice is None:
                left = self._left_out(tried, len(results))
                ended = (self._spent(left) if left or self.purse.left <= self.run_seconds
                         else f"No {'further' if results else 'single'} change would tell the suspects apart well "
                              "enough to be worth its runs.")
                break
            tried.add(str(choice.decision.change))
            result = self._made(choice)
            if result is None:
                continue
            results.append(result)
            findings.append(self._finding(result, choice))
            if result.took_hold_nowhere:
                self._nowhere.add(choice.decision.change.name)
            whys.append(f"{result.id} {why_chosen(choice, self._parts)}")
            self.report = joined(self.report, findings[-1:], 0)
            if result.verdict.lacks == "budget":
                ended = self._spent(self._left_out(tried, len(results)))
            elif proven(self.report):
                ended = "One cause is shown by a change that takes it away."
            elif _symptomless(result):
                ended = "The control did not show the symptom: there is nothing that a change could take away."
            elif sum(not r.verdict.is_effect and not r.took_hold_nowhere for r in results) >= MOST_VAIN:
                ended = f"{MOST_VAIN} changes that were the likeliest to tell did not take the symptom away."
            elif len(results) >= MOST_EXPERIMENTS:
                ended = f"{MOST_EXPERIMENTS} experiments were made."
        shown = not results or not _symptomless(results[-1])
        room = self.screens and self.purse.left >= LEAST_SCREENED * max(self.run_seconds, 1.0)
        if shown and room and not proven(self.report):
            more, told = self._screened()
            results += more
            findings += told
            ended = f"{ended} Then everything that can be changed was, one at a time."
        note = Proved(tuple(results), tuple(findings), self.outcome, ended, tuple(whys)).note
        drawn = tuple(path for r in results if (path := self.folder / f"{r.id}.png").is_file())
        return replace(self.report, remarks=(*self.report.remarks, *([note] if note else [])), drawn=drawn)

    def _screened(self) -> tuple[list[Result], list[Finding]]:
        """Every file, setting and place of the code changed, one at a time, where no hypothesis was left to be tried.

        A program whose settings cannot be read is left alone.
        """
        try:
            arms = arms_of(self.command, self.workspace, ("files", "settings", CODE))
            found = screen(self.engine, makeable(self.engine, arms), self.outcome, self.purse)
        except BadUsage as error:
            self.say(f"nothing was screened: {error}")
            return [], []
        for result in found.confirmed:
            written(result, self.folder)
        write_screen(found, self.folder)
        told = list(findings_of(found))
        self.report = joined(self.report, told, 0)
        return list(found.confirmed), told

    def _left_out(self, tried: set[str], made: int) -> list[float]:
        """The seconds of each further experiment that would tell something, whatever it takes."""
        done = set(tried)
        seconds: list[float] = []
        while made + len(seconds) < MOST_EXPERIMENTS and (choice := self._choice(done, math.inf)) is not None:
            done.add(str(choice.decision.change))
            seconds.append(choice.seconds)
        return seconds

    def _spent(self, left: list[float]) -> str:
        """That the budget ended it, how many experiments it left out, how long they take, and what to type for them."""
        spent = f"{SPENT}{self.purse.seconds:.0f} s is spent."
        if not left:
            return spent
        wanted = 10 * math.ceil((self.purse.spent + ROOM * sum(left)) / 10)
        typed = next_steps.with_budget(self.report, self.command, wanted)
        self.report = replace(self.report, extra_checks=(*self.report.extra_checks, typed))
        count = "1 more experiment" if len(left) == 1 else f"{len(left)} more experiments"
        return f"{spent} It left out {count} of about {sum(left):.0f} s in all: {typed}"

    @cached_property
    def _settings(self) -> list[Setting]:
        return settings_in(self.command, self.workspace)

    @property
    def _parts(self) -> Mapping[str, str]:
        """What the run was seen to have."""
        return self.engine.control.parts if self.engine.control is not None else {}

    def _choice(self, tried: set[str], left: float | None = None) -> Choice | None:
        fitting = list(fitting_decisions(self.report, self.outcome, self._parts))
        by_hand = list(by_settings((d for d in fitting if d.groups or d.change.name in self._nowhere),
                                   self._settings))
        made = {d.why for d in by_hand}
        options = [*own_decisions(self.report, self.folder, self._settings), *by_hand,
                   *(d for d in fitting if d.change.name not in self._nowhere
                     and not any(w.startswith(d.why) for w in made))]
        beliefs = with_seen(beliefs_about(self.report), options,
                            {**self._parts, **({PART: "settings of its own"} if by_hand else {})})
        return next_experiment(options, beliefs, run_seconds=max(self.run_seconds, 1.0),
                               left=self.purse.left if left is None else left, done=tried)

    def _made(self, choice: Choice) -> Result | None:
        """The experiment, None where this change cannot be made here."""
        change = choice.decision.change
        self.say(begun(f"experiment with {choice.decision.said or with_words(change)}, about {choice.seconds:.0f} s "
                       f"({choice.decision.why} {why_chosen(choice, self._parts)})"))
        try:
            result = self.engine.experiment(change, self.outcome, budget=self.purse, least=least_steps(change),
                                            pilot=True)
        except BadUsage as error:
            self.say(f"{change} cannot be tried: {error}")
            return None
        written(result, self.folder)
        return result

    def _finding(self, result: Result, choice: Choice) -> Finding:
        told, decision = finding_of(result), choice.decision
        change = str(decision.change)
        statement = told.statement.replace(change, decision.said or with_words(decision.change), 1)
        return replace(told, statement=statement, measured={**told.measured, "decides": decided(decision.removes),
                                       "specific": decision.specific})


def _symptomless(result: Result) -> bool:
    """Whether it ended with its controls: no run with the change was wanted."""
    return not result.verdict.decided and not any(r.changed for r in result.runs)


def own_decisions(report: Report, folder: Path, settings: Sequence[Setting] = ()) -> Iterator[Decision]:
    """What follows from this run's own findings, each change once: a patch applied, a file or rows left out, rows
    sorted, a setting that is what the data say."""
    made: dict[str, Decision] = {}
    for decision in _own_decisions(report, folder, settings):
        first = made.setdefault(str(decision.change), decision)
        made[str(decision.change)] = replace(first, removes=first.removes | decision.removes)
    yield from made.values()


def has_own(report: Report, folder: Path, command: str, workspace: Path) -> bool:
    """Whether a finding on this run's own data asks for a change that undoes one cause alone."""
    if not decidable(report):
        return False
    unlinked.made(folder)
    return any(d.specific and d.change.name != "patch" for d in own_decisions(report, folder,
                                                                             settings_in(command, workspace)))


def _own_decisions(report: Report, folder: Path, settings: Sequence[Setting]) -> Iterator[Decision]:
    for h in report.seen.verdict.hypotheses:
        if not h.speaks_for:
            continue
        diff = _patch(report, h)
        if diff:
            path = folder / f"{h.mode.id}-{hashlib.sha256(diff.encode()).hexdigest()[:8]}.diff"
            unlinked.write(path, diff)
            yield Decision(Change("patch", {"file": str(path)}), frozenset({h.mode.id}),
                           "The proposed change applied, and nothing else.", specific=True, said=_proposed(report, h))
        for finding in (w.finding for w in h.speaks_for if w.finding.rule[0] == "D"):
            yield from _left_out(finding, h.mode)
            yield from _as_the_data_say(finding, h.mode, settings)


def _patch(report: Report, found: triage.Hypothesis) -> str:
    """The unified diff of a hypothesis's certain change, "" where it has none."""
    told = diff_of_edits(edits_of(found, report.seen.findings, report.places))
    return f"{told}\n" if told else ""


def _proposed(report: Report, found: triage.Hypothesis) -> str:
    """The proposed change by its lines."""
    edits = edits_of(found, report.seen.findings, report.places)
    return f"the proposed change of {', '.join(dict.fromkeys(f'{e.path}:{e.line}' for e in edits))}"


def _as_the_data_say(finding: Finding, mode: FailureMode, settings: Sequence[Setting]) -> Iterator[Decision]:
    """The one setting that a finding says to be another than the data, set to what the data are."""
    if finding.measured.get("kind") != "configuration":
        return
    told, found = finding.measured.get("usual"), finding.measured.get("value")
    own = [s for s in settings if not isinstance(s.value, (bool, str)) and s.value == told]
    if len(own) != 1 or not isinstance(found, (int, float)):
        return
    value = int(found) if isinstance(own[0].value, int) and float(found).is_integer() else float(found)
    yield Decision(Change("set", {own[0].typed: value}), frozenset({mode.id}),
                   f"{own[0].name} is {told:g}, and the data say {found:g}: set to that, and nothing else.",
                   specific=True, said=f"setting {own[0].typed}={value}")


def _left_out(finding: Finding, mode: FailureMode) -> Iterator[Decision]:
    """The file that a finding on data is about left out, where it has siblings; the rows that it names left out."""
    file = finding.where.file
    if not file or not str(file).strip("./") or finding.severity is Severity.INFO:
        return
    modes = frozenset({mode.id})
    by, how = finding.measured.get("by"), finding.measured.get("how")
    if finding.measured.get("kind") == "order" and by and how:
        yield Decision(Change("rows-sorted", {"file": str(file), "by": str(by), "how": str(how)}), modes,
                       f"The rows of {file} sorted by {by}, and nothing else.", specific=True,
                       said=f"sorting {file} by {by} ({how})")
    if finding.measured.get("kind") == "shard" or finding.measured.get("shard"):
        yield Decision(Change("files-left-out", {"files": str(file)}), modes,
                       f"{file} left out, and nothing else.", specific=True, said=f"leaving {file} out")
    rows = finding.measured.get("rows")
    if isinstance(rows, tuple) and rows and all(isinstance(r, int) for r in rows):
        first, last = min(int(r) for r in rows if isinstance(r, int)), max(int(r) for r in rows if isinstance(r, int))
        yield Decision(Change("rows-left-out", {"file": str(file), "from": first, "to": last}), modes,
                       f"Rows {first} to {last} of {file} left out, and nothing else.", specific=True,
                       said=f"leaving rows {first} to {last} of {file} out")
