"""Run the verification: the unfixed code first, then the fix (as often as an intermittent symptom asks), and judge it.

What a person has to decide (the effect was not shown, the change was not executed) leaves the session in this phase,
with the fix in place, until they do, or give another command.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from traindx import events
from traindx.bounded_output import judged_output
from traindx.executed import Executed, executed, watched, watching
from traindx.hindrances import COULD_NOT, Change, hindrance
from traindx.model import Verification, Verify
from traindx.results import Baseline, Compared, settled, unfixed_run, wants_more
from traindx.sandbox import Sandbox, find_sandbox, refused_a_write
from traindx.steps.baseline import baseline, with_fixed_seed
from traindx.steps.fixing import changes_of, undo, undo_begun
from traindx.steps.old_run import old_run, rewritten
from traindx.steps.written import halts, is_running, settle
from traindx.turn import Interruption, Turn, in_thread
from traindx.two_runs import draw
from traindx.verify import (
    NewRun,
    Outcome,
    clean_environment,
    failing_step,
    judge,
    runs_needed,
    specification,
    steps_needed,
    supervised,
)

LOST_RUNS_AT_MOST = 3
"""How often a verification whose result was lost (power cut, cancelled) is started again by itself."""


async def verify(turn: Turn) -> bool:
    """Check the fix. False: the person must run it, or agree that it is run."""
    if undo_begun(turn):
        await in_thread(undo, turn, "user", "an undo that was cut off is ended")
        return True
    how = turn.verify
    if how is None or (not turn.allow_run if how.command else not _new_run_is_there(turn, how)):
        return False
    attempt = turn.session.attempts[-1]
    if attempt.verification is not None and not _asked_anew(turn):
        return False
    if not await in_thread(is_running, turn):
        await in_thread(settle, turn)
    outcomes: list[Outcome] = []
    sandbox = await in_thread(find_sandbox, how.sandbox)
    case = await in_thread(_case, turn)
    more = partial(wants_more, case, intermittent=turn.session.symptom.reproducible == "sometimes")
    unfixed = await baseline(turn, how, sandbox, more)
    if how.command:
        if not await in_thread(is_running, turn):
            await in_thread(settle, turn)
        for run in range(1, runs_needed(how, turn.session.symptom.reproducible) + 1):
            name = f"attempt-{attempt.number}-run-{run}{_round(turn, attempt.number)}"
            outcomes.append(await _run_once(turn, how, name, sandbox, case.changes))
            await in_thread(settle, turn)
            if outcomes[-1].exit_code != 0:
                break
    checked, after = await in_thread(_judge, turn, how, outcomes)
    if outcomes and checked.result == "failed":
        await in_thread(_stop_if_hindered, turn, how, outcomes[-1], after[-1])
    seen = replace(case, baseline=unfixed, outcomes=outcomes, after=after,
                   executed=await in_thread(_executed, turn, case.changes, outcomes),
                   needed=steps_needed(failing_step(case.diagnosis), how))
    verification = await in_thread(settled, checked, seen)
    verification = _with_sandbox(verification, outcomes, sandbox)
    if turn.report:
        await in_thread(_draw_both, turn, seen, verification)
    turn.record(events.Verified(verification=verification))
    return verification.decided


def _draw_both(turn: Turn, case: Compared, seen: Verification) -> None:
    """The picture of the run before and after, of the metrics of the table: the symptom's own first."""
    if case.after:
        draw(unfixed_run(case).curves, case.after[-1].curves, [row.name for row in seen.table],
             turn.folder.path / "plots" / f"before_after_{turn.session.attempts[-1].number}.png")


def _case(turn: Turn) -> Compared:
    """What is known before anything is run."""
    diagnosis, attempt = turn.session.diagnosis, turn.session.attempts[-1]
    assert diagnosis is not None, "a fix follows a diagnosis"
    fix = diagnosis.option(attempt.option)
    assert fix is not None, "the state machine checked the option"
    return Compared(diagnosis, fix, old_run(turn), (), (), Baseline(), Executed("unknown"),
                    changes_of(turn, attempt.number))


def _asked_anew(turn: Turn) -> bool:
    """Whether a person gave other terms after the last verification, which decided nothing."""
    last = max(r.number for r in turn.journal.records if r.kind == "event" and r.body.get("kind") == "verified")
    return any(r.number > last and r.kind == "terms" and "verify" in r.body for r in turn.journal.records)


def _executed(turn: Turn, changes: Sequence[Change], outcomes: Sequence[Outcome]) -> Executed:
    """Whether the runs executed the change; without a run nothing is said."""
    if not outcomes:
        return Executed("unknown")
    return executed(changes, turn.workspace, [o.folder / "lines" for o in outcomes])


def _round(turn: Turn, attempt: int) -> str:
    """Ends the name of a run: a verification that could not be made, or decided nothing, is made again by itself."""
    applied = max(r.number for r in turn.journal.records if r.kind == "event" and r.body.get("kind") == "applied")
    before = halts(turn) + sum(1 for r in turn.journal.records if r.number > applied and (
        (r.kind == "note" and r.body.get("could_not_verify") == attempt)
        or (r.kind == "event" and r.body.get("kind") == "verified")))
    return f"-round-{before + 1}" if before else ""


def _stop_if_hindered(turn: Turn, how: Verify, outcome: Outcome, after: NewRun) -> None:
    """Leave the fix in place and unverified, where the machine ended the command. Raises Interruption."""
    assert turn.session.diagnosis is not None, "a fix follows a diagnosis"
    number = turn.session.attempts[-1].number
    changes = changes_of(turn, number)
    why = hindrance(turn.session.diagnosis, how, outcome, after, changes, turn.workspace)
    if why is not None:
        turn.journal.append("note", {"could_not_verify": number, "why": why})
        raise Interruption(COULD_NOT + why)


def _with_sandbox(verification: Verification, outcomes: Sequence[Outcome], sandbox: Sandbox) -> Verification:
    """The verification with a note on what its command could do, and on what the sandbox may have refused it."""
    if not outcomes:
        return verification
    notes = [f"the command was {sandbox.said}"]
    if verification.failed and sandbox.program and refused_a_write(outcomes[-1].folder / "output.log"):
        notes.append("its output complains of a file that cannot be written: name the folder that it writes to "
                     "(--writable DIR), or run it without the sandbox (--no-sandbox)")
    return verification.model_copy(update={"notes": (*verification.notes, *notes)})


def _new_run_is_there(turn: Turn, how: Verify) -> bool:
    """True where a named artifact was written after the fix was applied."""
    applied = max(r.at for r in turn.journal.records if r.kind == "event" and r.body.get("kind") == "applied")
    since = datetime.fromisoformat(applied).timestamp()
    return any(f.stat().st_mtime >= since for p in _new_run(turn, how)
               for f in (p.rglob("*") if p.is_dir() else [p]) if f.is_file())


def _new_run(turn: Turn, how: Verify) -> list[Path]:
    paths = [turn.workspace / p for p in how.new_run]
    return [p for p in paths if p.exists()]


async def _run_once(turn: Turn, how: Verify, name: str, sandbox: Sandbox, changes: Sequence[Change]) -> Outcome:
    """One run of the command: an earlier process may have started or finished it already."""
    for again in range(LOST_RUNS_AT_MOST + 1):
        key = f"{name}-again-{again}" if again else name
        folder = turn.folder.path / "verify" / key
        if turn.journal.begun(key) is None:
            folder.mkdir(parents=True, exist_ok=True)
            turn.journal.begin(key, command=how.command)
        environment = watching(folder / "lines", watched(changes, turn.workspace),
                               with_fixed_seed(clean_environment(os.environ, how.keep_env)))
        writable = [*_writable(turn, how), *([folder / "lines"] if (folder / "lines").is_dir() else [])]
        outcome = await supervised(folder, specification(how, turn.workspace, sandbox, writable), environment)
        if not outcome.cancelled:
            if turn.journal.finished(key) is None:
                turn.journal.finish(key, exit_code=outcome.exit_code, seconds=outcome.seconds)
            return outcome
    raise Interruption("the verification was cut off several times: see verify/ in the session's folder, then resume")


def _writable(turn: Turn, how: Verify) -> list[Path]:
    """Where the new run writes its metrics, where that lies outside of the workspace."""
    named = [turn.workspace / p for p in how.new_run]
    return [p if p.is_dir() else p.parent for p in named if not p.resolve().is_relative_to(turn.workspace.resolve())]


def _judge(turn: Turn, how: Verify, outcomes: Sequence[Outcome]) -> tuple[Verification, Sequence[NewRun]]:
    assert turn.session.diagnosis is not None, "a fix follows a diagnosis"
    written = [*_new_run(turn, how), *rewritten(turn)]
    after = [turn.examine([judged_output(o.folder), *(written if o is outcomes[-1] else ())]) for o in outcomes]
    if not outcomes:
        after = [turn.examine(written)]
    return judge(turn.session.diagnosis, how, outcomes, old_run(turn), after, turn.folder.path), after
