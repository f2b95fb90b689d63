"""From a command that passed or failed to what that shows of the fix: one result of `verification.VerificationResult`.

The new run is compared with the unfixed code under the same command. Where there is no such run, with the run that was
diagnosed: then only a fault that it passed beyond its old place counts as gone, and a metric shows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traindx.before_after import Ended, rows
from traindx.bounded_output import cut, judged_output
from traindx.effect import NOT_SHOWN, Level, Moved, compared
from traindx.executed import Executed
from traindx.hindrances import Change, about_ending, last_error, tail
from traindx.model import Diagnosis, Fix, MetricChange, Verification
from traindx.promised import promises_of
from traindx.recurrence import is_cited, same_finding
from traindx.verify import (
    NewRun,
    Outcome,
    cited_rules,
    failing_step,
    grave,
    is_back,
    prints_nonfinite,
)
from traindx_tools.finding import Finding
from traindx_tools.on_logs.run import ErrorEvent

_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
_OF_THE_COPY = frozenset({"FileNotFoundError", "ModuleNotFoundError", "ImportError", "PermissionError",
                          "NotADirectoryError", "IsADirectoryError"})  # fmt: skip
"""Errors that a copy of the workspace may have of its own: they are no proof that the unfixed code fails."""


@dataclass(frozen=True)
class BaselineRun:
    """One run of the unfixed code; `outcome` is None where a person handed it over."""

    run: NewRun
    outcome: Outcome | None = None
    nonfinite: bool = False
    """Whether its output names a loss or gradient norm that is not finite."""

    @property
    def seconds(self) -> float:
        """How long it took; 0 where that is not known."""
        return self.outcome.seconds if self.outcome is not None else 0.0

    @property
    def error(self) -> ErrorEvent | None:
        """The exception that ended it, None where none did."""
        return ended_by(self.outcome)


@dataclass(frozen=True)
class Baseline:
    """The unfixed code under the same command: its runs, or why there are none."""

    runs: tuple[BaselineRun, ...] = ()
    skipped: str = ""
    said: str = ""
    budget: float = 0.0
    """Seconds that repeated runs may take together."""

    @property
    def note(self) -> str:
        """For a person."""
        if not self.runs:
            return f"no baseline: {self.skipped}"
        if self.said:
            return f"baseline: {self.said}"
        times = "once" if len(self.runs) == 1 else f"{len(self.runs)} times"
        return (f"baseline: the command was run {times} on the unfixed code, in a copy (repeats end after "
                f"{self.budget:g} s in all)")


@dataclass(frozen=True)
class Compared:
    """Everything that a result is judged by."""

    diagnosis: Diagnosis
    fix: Fix
    old: NewRun
    """The run that was diagnosed."""
    outcomes: Sequence[Outcome]
    after: Sequence[NewRun]
    baseline: Baseline
    executed: Executed
    changes: Sequence[Change] = ()
    needed: float = 0.0
    """The step that a run without a baseline must have passed."""


def settled(checked: Verification, case: Compared) -> Verification:
    """The verification with its result. `checked`: what `verify.judge` said of the new run alone."""
    other = _others(case)
    notes = [case.baseline.note, *filter(None, (case.executed.said, *_cuts(case))), *other]
    moved = promises_kept(case)
    told = checked.model_copy(update={"notes": (*checked.notes, *notes), "compared": tuple(m.said for m in moved),
                                      "table": _rows(case)})
    if checked.result == "failed":
        ended = _ends_as_before(case) if set(checked.reasons) <= set(checked.endings) else ""
        if not ended or (_ends_in_an_error(case) and about_ending(case.diagnosis)) or not _says_more(case):
            return _of_failure(told, case)
        told = checked = told.model_copy(update={"reasons": (ended,)})
    if case.executed.state == "no":
        return _with(told, "not_executed", f"{checked.reasons[0]}, but {case.executed.said}: nothing is verified")
    stayed = _stayed(case)
    if stayed:
        return _with(told, "no_effect", f"{checked.reasons[0]}, but {stayed}")
    shown = _gone(case) or next((m.said for m in moved if m.outcome == "moved"), "")
    if shown and not other:
        return _with(told, "fixed", f"{checked.reasons[0]}; {shown}")
    if checked.endings and about_ending(case.diagnosis):
        return _with(told, "no_effect", f"{checked.reasons[0]}, and how it ends is what was diagnosed")
    return _of_no_effect(told, case, moved)


def unfixed_run(case: Compared) -> NewRun:
    """The run that the new one is shown beside: of the unfixed code where that printed metrics, else the diagnosed."""
    return next((b.run for b in case.baseline.runs if b.run.metrics), case.old)


def _rows(case: Compared) -> tuple[MetricChange, ...]:
    """Before: the unfixed code under the same command, where that printed metrics; else the run that was diagnosed."""
    unfixed = [b.run for b in case.baseline.runs if b.run.metrics] or [case.old]
    return rows([levels_of(r) for r in unfixed], [levels_of(a) for a in case.after], symptom=case.diagnosis.symptom,
                promised=case.fix.metric, ended=Ended(_broke_off(case.baseline.runs[:1]), _of_the_fix(case)))


def _broke_off(runs: Sequence[BaselineRun]) -> str:
    return next((_ending(r.outcome, r.run) for r in runs if r.outcome is not None), "")


def _of_the_fix(case: Compared) -> str:
    return next((said for o, a in zip(case.outcomes, case.after, strict=False) if (said := _ending(o, a))), "")


def _ending(outcome: Outcome, run: NewRun) -> str:
    """How a command ended that did not run through, and where: "RuntimeError at step 130"."""
    if outcome.exit_code == 0:
        return ""
    error = ended_by(outcome)
    how = (error.type.rpartition(".")[2] if error is not None else "not in time" if outcome.timed_out
           else "out of memory" if outcome.out_of_memory else f"exit code {outcome.exit_code}")
    return how if run.last_step is None else f"{how} at step {run.last_step:g}"


def _ends_as_before(case: Compared) -> str:
    """How the command ends with the fix and without it, in words; "" where the two differ or are not known.

    What is alike decides nothing: the command has a reason of its own to end so (a bar that it misses, an argument).
    """
    unfixed = [b.outcome for b in case.baseline.runs]
    if not unfixed or not case.outcomes or any(o is None for o in unfixed):
        return ""
    ways = {_way(o) for o in (*unfixed, *case.outcomes) if o is not None}
    if len(ways) != 1:
        return ""
    last = case.outcomes[-1]
    how = ("does not end in time" if last.timed_out else "uses more memory than allowed" if last.out_of_memory
           else f"ends with exit code {last.exit_code}")
    return f"the command {how} with the fix and without it, which decides nothing"


def _says_more(case: Compared) -> bool:
    """Whether the runs tell by more than how they ended: they measured something, or did not reach the change at all.

    A checker that prints nothing has its exit code alone: where it fails as before, the fix did not make it pass.
    """
    measured = any(r.metrics or r.levels for r in (*(b.run for b in case.baseline.runs), *case.after))
    return measured or case.executed.state == "no" or any(b.nonfinite for b in case.baseline.runs)


def _way(outcome: Outcome) -> tuple[object, ...]:
    """How a command ended, as far as two endings are alike."""
    error = ended_by(outcome)
    return (outcome.exit_code, outcome.timed_out, outcome.out_of_memory,
            None if error is None else signature(error))


def _ends_in_an_error(case: Compared) -> bool:
    """Whether an exception ended the last run: where that is what was diagnosed, it is the symptom itself."""
    return bool(case.outcomes) and ended_by(case.outcomes[-1]) is not None


def _with(told: Verification, result: str, *reasons: str) -> Verification:
    return Verification.model_validate({**dict(told), "result": result, "passed": result == "fixed",
                                        "reasons": reasons})


def promises_kept(case: Compared) -> tuple[Moved, ...]:
    """What became of each promise that was measured on both sides."""
    before = [levels_of(b.run) for b in case.baseline.runs]
    after = [levels_of(a) for a in case.after]
    found = (compared(p, before, after) for p in promises_of(case.fix.metric))
    return tuple(m for m in found if m is not None)


def levels_of(run: NewRun) -> dict[str, Level]:
    """The levels of a run; where only last values are known, those."""
    return dict(run.levels) or {name: Level(value) for name, value in run.metrics.items()}


def wants_more(case: Compared, baseline: Baseline, *, intermittent: bool) -> bool:
    """Whether a further run of the unfixed code would tell more."""
    if any(_failed(b) for b in baseline.runs):
        return False
    levels = [levels_of(b.run) for b in baseline.runs]
    measured = [p for p in promises_of(case.fix.metric) if compared(p, levels, levels) is not None]
    if intermittent:
        return True
    marks = {tuple(sorted((n, lv.mark) for n, lv in run.items())) for run in levels}
    return bool(measured) and (len(levels) < 2 or len(marks) > 1)


# What failed


def ended_by(outcome: Outcome | None) -> ErrorEvent | None:
    """The last exception in the output of a command that failed."""
    if outcome is None or outcome.exit_code == 0:
        return None
    return last_error(tail(outcome.folder / "output.log"))


def signature(error: ErrorEvent) -> tuple[str, str]:
    """What makes two errors the same one: type and first line, without the numbers in it."""
    return error.type.rpartition(".")[2], _NUMBERS.sub("#", error.message.strip().split("\n")[0])[:200]


def _failed(run: BaselineRun) -> bool:
    return run.nonfinite or (run.outcome is not None and run.outcome.exit_code != 0)


def _of_failure(told: Verification, case: Compared) -> Verification:
    error = next((e for o in case.outcomes for e in [ended_by(o)] if e is not None), None)
    same = _as_before(case)
    if same:
        return _with(told, "no_effect", *told.reasons, same)
    own = _own(case, error)
    if own:
        told = told.model_copy(update={"own_error": own})
        return _with(told, "failed", *told.reasons, f"the change brought an error of its own: {own}")
    both = bool(case.baseline.runs) and all(_failed(b) for b in case.baseline.runs)
    more = ["it fails on the unfixed code as well, and nothing in its output shows whether the symptom stayed"]
    return _with(told, "failed", *told.reasons, *(more if both else []))


def _as_before(case: Compared) -> str:
    """How the fault is there as without the fix, "" where that was not seen."""
    printed = any(b.nonfinite for b in case.baseline.runs) and any(
        prints_nonfinite(judged_output(o.folder)) for o in case.outcomes)
    return _stayed(case) or (
        "the symptom stayed: the unfixed code prints a value that is not finite as well" if printed else "")


def _stayed(case: Compared) -> str:
    again = {f.rule for run, f in _of_cited_rules(case, case.after) if _is_there(f, run, case)}
    return f"the symptom stayed: {', '.join(sorted(again))} is seen as without the fix" if again else ""


def _unfixed(case: Compared) -> list[NewRun]:
    return [b.run for b in case.baseline.runs] or [case.old]


def _of_cited_rules(case: Compared, runs: Iterable[NewRun]) -> list[tuple[NewRun, Finding]]:
    cited = cited_rules(case.diagnosis)
    return [(run, f) for run in runs for f in grave(run.findings) if f.rule in cited]


def _is_there(finding: Finding, run: NewRun, case: Compared) -> bool:
    """Whether a finding of a new run is one that was cited, and the unfixed code shows it with the same value."""
    return is_cited(finding, case.diagnosis) and any(
        same_finding(f, finding, old.levels, run.levels) for old, f in _of_cited_rules(case, _unfixed(case)))


def _others(case: Compared) -> tuple[str, ...]:
    """Findings of a cited rule that say something else than what was cited and the unfixed code shows, in words."""
    found = [f"another finding came: {f.rule} {f.statement}" for run, f in _of_cited_rules(case, case.after)
             if not _is_there(f, run, case) and not is_back(f, case.diagnosis, case.old, run)]
    return tuple(dict.fromkeys(found))


def _cuts(case: Compared) -> tuple[str, ...]:
    """What of the outputs was not read."""
    unfixed = [b.outcome for b in case.baseline.runs if b.outcome is not None]
    return tuple(dict.fromkeys(said for o in (*unfixed, *case.outcomes) for said in [cut(o.folder)]))


def _own(case: Compared, error: ErrorEvent | None) -> str:
    """The error that only the changed code has; without a baseline one that goes through a changed line."""
    if error is None:
        return ""
    if case.baseline.runs:
        known = {signature(b.error) for b in case.baseline.runs if b.error is not None}
        new = signature(error) not in known
    else:
        new = any(f.file.endswith(c.path) and c.touches(f.line) for f in error.frames for c in case.changes)
    return f"{error.type}: {error.message.strip().split(chr(10))[0]}"[:300] if new else ""


def _rules(runs: Iterable[NewRun]) -> frozenset[str]:
    return frozenset(f.rule for r in runs for f in grave(r.findings))


# What passed


def _gone(case: Compared) -> str:
    """The fault of the unfixed code that the new run does not have, in words; "" where none was seen to go."""
    if not case.baseline.runs:
        return _passed_beyond(case)
    alike = bool(_ends_as_before(case))
    bad = [b for b in case.baseline.runs if (b.nonfinite if alike else _failed(b))]
    usable = [b for b in bad if not _only_of_the_copy(b, case)]
    if usable:
        return _how_it_fails(usable[0]) + ", and not with the fix"
    cited = cited_rules(case.diagnosis) - _rules(case.after)
    always = [_rules([b.run]) for b in case.baseline.runs]
    gone = frozenset.intersection(*always) & cited
    measured = all(set(levels_of(b.run)) <= set(levels_of(a)) for b in case.baseline.runs for a in case.after)
    return f"the unfixed code shows {', '.join(sorted(gone))}, and it is gone with the fix" if gone and measured else ""


def _how_it_fails(run: BaselineRun) -> str:
    outcome, error = run.outcome, run.error
    if error is not None and not run.nonfinite:
        return f"the unfixed code ends with {error.type}"
    if run.nonfinite:
        return "the unfixed code prints a loss or gradient norm that is not finite"
    how = "does not end in time" if outcome is not None and outcome.timed_out else (
        "uses more memory than is allowed" if outcome is not None and outcome.out_of_memory else
        f"ends with exit code {outcome.exit_code if outcome is not None else '?'}")
    return f"the command {how} on the unfixed code"


def _only_of_the_copy(run: BaselineRun, case: Compared) -> bool:
    """Whether it failed by something that its copy lacked, which the run that was diagnosed did not have."""
    error = run.error
    if error is None or signature(error)[0] not in _OF_THE_COPY:
        return False
    return not any(signature(error)[0] in f.statement for f in case.old.findings)


def _passed_beyond(case: Compared) -> str:
    """Without a baseline: a fault that the diagnosed run had at a step which every new run passed without it."""
    gone = (cited_rules(case.diagnosis) & _rules([case.old])) - _rules(case.after)
    reached = [a.last_step for a in case.after]
    if not gone or failing_step(case.diagnosis) is None or any(r is None or r < case.needed for r in reached):
        return ""
    return f"the run that was diagnosed shows {', '.join(sorted(gone))}, and the new one passed that place without it"


def _of_no_effect(told: Verification, case: Compared, moved: Sequence[Moved]) -> Verification:
    """Nothing that was promised moved: measurably none, or not to be told.

    A metric that is the same speaks against the fix only where the unfixed code shows the fault under this command.
    """
    still = [m for m in moved if m.outcome == "against" or (m.outcome == "same" and _shows_the_fault(case, m))]
    if still and len(still) == len(moved):
        return _with(told, "no_effect", "the command passed, but what was promised did not come: "
                     + "; ".join(m.said for m in still))
    return _with(told, "passed_effect_not_shown",
                 f"{told.reasons[0]}, but its effect was not shown: {_why(case, moved)}")


def _shows_the_fault(case: Compared, same: Moved) -> bool:
    """Whether each run of the unfixed code has what was diagnosed: a cited finding, its error, or what the promise is
    to end (a value that is not finite, a metric that stands still)."""
    if not case.baseline.runs:
        return False
    if all(any(is_cited(f, case.diagnosis) for _, f in _of_cited_rules(case, [b.run])) for b in case.baseline.runs):
        return True
    levels = [levels_of(b.run)[same.series] for b in case.baseline.runs]
    return {"finite": not all(lv.finite for lv in levels), "moves": all(lv.extent == 0 for lv in levels)}.get(
        same.promise.way, False)


def _why(case: Compared, moved: Sequence[Moved]) -> str:
    other = _others(case)
    if moved or other:
        absent = any(m.outcome == "same" for m in moved) and NOT_SHOWN
        return "; ".join([*(m.said for m in moved), *([absent] if absent else []), *other])
    promised = ", ".join(map(str, promises_of(case.fix.metric)))
    if not case.baseline.runs:
        return f"nothing to compare with ({case.baseline.skipped})"
    if not promised:
        return f'what the fix promises ("{case.fix.metric}") is no metric that two runs can be compared by'
    return f"what the fix promises ({promised}) was not measured by both runs"
