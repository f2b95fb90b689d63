"""Debug sessions: start one, decide at its gate, resume it, from a script or from any other process.

    result = await run_debug_session("loss is NaN after step 400", "runs/bert", verify="python train.py --steps 800",
                                     approve=ask_me, allow_run=True)

A session lives on disk and waits there: nothing is lost when a process ends. `result.status` says where it stands and
`result.next_step` what to do.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from traindx import arguments, documents, events, gate
from traindx.accepting import go_on_from, since_the_fix
from traindx.beside import beside
from traindx.beside_a_loop import in_a_notebook, waited_for
from traindx.driver import drive
from traindx.investigators.base import Investigator
from traindx.journal import Journal, read_journal
from traindx.knowledge import add_knowledge, read_knowledge
from traindx.leaving import leaving
from traindx.machine import Session, advance
from traindx.model import Approach, Artifacts, Budget, Decision, Direction, Verification, Verify
from traindx.notebook_progress import listening
from traindx.notices import Hear, Notice
from traindx.session_folder import (
    Opening,
    SessionFolder,
    find_session,
    folders,
    new_folder,
    opening_of,
    read_session,
    replay,
)
from traindx.session_result import SessionResult, result_of
from traindx.steps.fixing import waits_unedited
from traindx.strikes import Ledger
from traindx.terms import Told, artifacts_from, budget_from, callables, entry_of, symptom_from, there, verification
from traindx.turn import Approve, Fixer, Turn
from traindx.verify import Examine, examine_with_instruments
from traindx.workspace import SCRATCH
from traindx_tools.errors import BadUsage, TraindxError

if TYPE_CHECKING:
    from traindx.investigators.choose import Chosen

__all__ = ["SessionResult", "confirm_fix", "decide", "direct", "give_data", "list_sessions", "read_result",
           "record_knowledge", "reopen_approach", "resume_session", "resume_session_sync", "run_debug_session",
           "run_debug_session_sync"]

Given = ParamSpec("Given")


class NotWaiting(TraindxError):
    """A decision came for a session that does not wait for one (any more)."""


async def run_debug_session(
    symptom: Told,
    workspace: str | Path,
    *,
    artifacts: Artifacts | Mapping[str, Any] | Sequence[str | Path] | None = None,
    verify: Verify | Mapping[str, Any] | str | Sequence[str] | None = None,
    approve: Approve | None = None,
    investigator: Investigator | Chosen | str | None = None,
    budget: Budget | Mapping[str, Any] | float | None = None,
    allow_run: bool = False,
    fixer: Fixer | None = None,
    examine: Examine = examine_with_instruments,
    good_commit: str | None = None,
    unwatched: Sequence[str] = (),
    entry: Sequence[str | Path] | str | Path = (),
    everything: bool = False,
    clock: Callable[[], float] = time.monotonic,
    report: bool = True,
    hear: Hear | None = None,
) -> SessionResult:
    """Find the root cause of a failed training run, and fix it if a person approves.

    Args:
        symptom: what went wrong, in a sentence or as a `Symptom`.
        workspace: folder of the training code. The session lives in `scratch/debug/` below it; nothing else in it is
            written before an approval.
        artifacts: logs, curves, code, error messages, configuration; a list is read by content. By default all that
            lies in the workspace.
        verify: how a fix is checked: a shell command, a list of arguments, or a `Verify`.
        approve: called with the `Diagnosis`, plain or async; returns a `Decision`, or None for "not now". Without it
            the session waits on disk for `decide`.
        investigator: who looks and thinks; by default the offline one: deterministic, no model, no network. "claude",
            "api" or "auto" take Claude with the settings of the environment, and its fixer where none is given. Where
            "auto" reaches nobody the offline one looks, and `degraded` of the result says who was missing and why.
        budget: time for looking in each turn (verification has its own limit; 1,800 s by default) and how many fixes
            may be tried (6): seconds, or a `Budget`. Where it is spent, `resume_session(..., budget=...)` gives more.
        allow_run: the user agrees that `verify` is run.
        fixer: turns the instructions of an approved option into edits, which must lie within it.
        examine: reads the artifacts of a run for the verification.
        good_commit: the last commit that is known to be good.
        unwatched: patterns of paths that other processes may change meanwhile ("*.log").
        entry: the Python files that start the run, where they are not to be found: they and what they import are
            judged. By default the command of `verify`, the log and the code tell.
        everything: judge all code of the workspace, also what the run does not use.
        clock: seconds, monotonic.
        report: whether report.html and its pictures are made.
        hear: told of the session's folder, of each phase that begins and of each piece of evidence, as a `Notice`. By
            default the cell of a notebook shows the phases, and a script prints them on standard error
            (`hear=lambda notice: None` says nothing).

    Returns the `SessionResult`. Raises TraindxError for bad arguments and where the disk refuses. Ctrl-C and asyncio's
    CancelledError pass through after they were recorded, with words: what stands changed, the commands that go on or
    take it back; without a `hear` they are logged as well. The session can be resumed in each of these cases.
    """
    root = arguments.folder("workspace", workspace)
    for name, value in {"allow_run": allow_run, "everything": everything, "report": report}.items():
        arguments.flag(name, value)
    callables(approve=approve, hear=hear, fixer=fixer)
    first = {"symptom": symptom_from(symptom), "artifacts": there(artifacts_from(artifacts), root),
             "verify": verification(verify, root), "budget": budget_from(budget) or Budget(), "allow_run": allow_run,
             "good_commit": arguments.optional_text("good_commit", good_commit, '"1a2b3c4"'),
             "unwatched": arguments.paths("unwatched", unwatched), "entry": entry_of(entry, root),
             "everything": everything}
    from traindx.investigators import choose

    hear = hear or listening()
    taken = await choose.named(investigator, root, hear)
    folder = new_folder(root, {**first, "degraded": taken.degraded})
    hear(Notice("opened", text=str(folder.path)))
    with leaving(folder, hear), folder.locked() as lock:
        turn = Turn(folder, taken.investigator, lock=lock, approve=approve, fixer=fixer or taken.fixer, examine=examine,
                    clock=clock, report=report, hear=hear)
        _look_beside(turn)
        await drive(turn)
    return read_result(folder.path)


async def resume_session(
    session: str | Path,
    *,
    workspace: str | Path | None = None,
    verify: Verify | Mapping[str, Any] | str | Sequence[str] | None = None,
    approve: Approve | None = None,
    investigator: Investigator | Chosen | str | None = None,
    budget: Budget | Mapping[str, Any] | float | None = None,
    allow_run: bool | None = None,
    accept_changes: bool = False,
    fixer: Fixer | None = None,
    examine: Examine = examine_with_instruments,
    clock: Callable[[], float] = time.monotonic,
    report: bool = True,
    hear: Hear | None = None,
) -> SessionResult:
    """Go on with a session after a crash, a cancel, a decision from elsewhere or a halt.

    `session` is its folder or id (then `workspace` says where). `accept_changes`: the user says that the files named
    by a halt are theirs and right as they are. The other arguments replace those that the session began with.
    Raises NoSuchSession, SessionBusy, IllegalTransition (three strikes wait for `direct`).
    """
    folder = find_session(session, Path(workspace) if workspace is not None else None)
    callables(approve=approve, hear=hear, fixer=fixer)
    for name, value in {"allow_run": allow_run or False, "accept_changes": accept_changes, "report": report}.items():
        arguments.flag(name, value)
    check, money = verification(verify, folder.workspace), budget_from(budget)
    from traindx.investigators import choose

    hear = hear or listening()
    taken = await choose.named(investigator, folder.workspace, hear)
    hear(Notice("opened", text=str(folder.path)))
    with leaving(folder, hear), folder.locked() as lock:
        terms = {"verify": check, "budget": money, "allow_run": allow_run,
                 "degraded": taken.degraded if investigator is not None else None}
        _wake(folder, {k: v for k, v in terms.items() if v is not None}, accept_changes)
        turn = Turn(folder, taken.investigator, lock=lock, approve=approve, fixer=fixer or taken.fixer, examine=examine,
                    clock=clock, report=report, hear=hear)
        _look_beside(turn)
        await drive(turn)
    return read_result(folder.path)


def _look_beside(turn: Turn) -> None:
    """Say and write down which other sessions of the workspace are under way."""
    if others := beside(turn.folder):
        turn.journal.append("note", {"beside": list(others)})
        for said in others:
            turn.hear(Notice("said", text=said))


def _wake(folder: SessionFolder, terms: Mapping[str, Any], accept_changes: bool) -> None:
    """Record the new terms and that the session goes on; accepted changes are from now on what the workspace holds."""
    with Journal(folder.journal) as journal:
        session = replay(journal.records)
        changed = Opening.model_validate({**dict(opening_of(journal.records)), **terms})
        if changed != opening_of(journal.records):
            journal.append("terms", {name: changed.to_json()[name] for name in terms})
        if session.phase != "halted" and session.interrupted is None:
            return
        go_on_from(folder, journal, session, accept_changes)


def _without_a_loop(work: Callable[Given, Coroutine[Any, Any, SessionResult]]) -> Callable[Given, SessionResult]:
    """The same, with the same arguments, for code without an event loop, and for a notebook's cell, which has one.

    Raises BadUsage where another loop is running.
    """

    @functools.wraps(work)
    def waited(*given: Given.args, **named: Given.kwargs) -> SessionResult:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _with_its_words(work(*given, **named))
        if in_a_notebook():
            return waited_for(work(*given, **named))
        raise BadUsage(f"an event loop is running here: `await {work.__name__}(...)` instead, from `traindx`")

    waited.__name__ = waited.__qualname__ = f"{work.__name__}_sync"
    # `inspect` and notebooks would take a wrapper of a coroutine function for one
    del waited.__wrapped__
    waited.__signature__ = inspect.signature(work)  # type: ignore[attr-defined]
    return waited


def _with_its_words(work: Coroutine[Any, Any, SessionResult]) -> SessionResult:
    """`asyncio.run` makes a Ctrl-C without words of the cancellation that has them."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt as pressed:
        told = pressed.args or (pressed.__context__.args if pressed.__context__ is not None else ())
        raise KeyboardInterrupt(*told) from None


run_debug_session_sync = _without_a_loop(run_debug_session)
resume_session_sync = _without_a_loop(resume_session)


def decide(session: str | Path, decision: Decision, *, workspace: str | Path | None = None) -> SessionResult:
    """Decide a waiting gate, from any process. The fix is applied when the session is resumed.

    The result of an approval or a revision is `answered`: what a person decided is kept, and `resume_session` goes on.
    A change by hand that nobody began yet is given up by another decision: the diagnosis is presented again.
    Raises NotWaiting where it was decided already, ApprovalRefused where the decision is about another diagnosis or
    option, StrikeRefused where the approach has three strikes, SessionBusy while another process holds the session.
    """
    folder = find_session(session, Path(workspace) if workspace is not None else None)

    def check(now: Session) -> events.Event:
        if now.phase == "fix" and now.decision is not None and waits_unedited(folder, now):
            return _taken_back(now.decision, decision)
        if now.phase != "gate" or now.diagnosis is None:
            raise NotWaiting(_no_gate(now))
        gate.check_decision(decision, now.diagnosis)
        chosen = now.diagnosis.option(decision.option) if decision.verdict == "approve" and decision.option else None
        Ledger(folder.workspace).allow(now.diagnosis, chosen)
        return events.Decided(decision=decision)

    after = _append(folder, check)
    return after if decision.verdict == "approve" else _with_tests(folder, after, decision.comment)


def _with_tests(folder: SessionFolder, after: SessionResult, claim: str) -> SessionResult:
    """A rejection or revision that names a cause: the experiments that would test it are noted with it."""
    from traindx.claimed import tests_of

    tests = tests_of(claim, folder.workspace, opening_of(read_journal(folder.journal)))
    if not tests and not any("tests" in r.body for r in read_journal(folder.journal) if r.kind == "note"):
        return after
    with folder.locked(), Journal(folder.journal) as journal:
        journal.append("note", {"tests": list(tests)})
    return read_result(folder.path)


def _taken_back(before: Decision, after: Decision) -> events.Event:
    """An approval whose change by hand was not begun gives way: the diagnosis waits for a decision again."""
    said = f"the approval of option {before.option} was taken back by {after.by}"
    return events.ApprovalStale(reasons=(said, *([f"at the gate: {after.comment}"] if after.comment else [])))


def _no_gate(now: Session) -> str:
    if now.decision is not None:
        d = now.decision
        said = f"{d.verdict} option {d.option}" if d.option else d.verdict
        return f"session {now.id} was decided already: {d.by} said {said} at {d.at:%Y-%m-%d %H:%M:%S} UTC"
    return f"session {now.id} does not wait at the gate: it is in phase {now.phase}"


def direct(session: str | Path, direction: Direction, *, workspace: str | Path | None = None) -> SessionResult:
    """Decide after three strikes: try a fundamentally different approach, or stop. Raises NotWaiting otherwise."""
    folder = find_session(session, Path(workspace) if workspace is not None else None)

    def check(now: Session) -> events.Event:
        if now.halt is None or now.halt.halt != "three-strikes":
            raise NotWaiting(f"session {now.id} is not halted by three strikes: it is in phase {now.phase}")
        return events.Directed(direction=direction)

    return _append(folder, check)


def confirm_fix(session: str | Path, *, passed: bool, comment: str, by: str = "user",
                workspace: str | Path | None = None) -> SessionResult:
    """The person checked the fix themselves, because no verification may be run. Raises NotWaiting otherwise."""
    folder = find_session(session, Path(workspace) if workspace is not None else None)

    arguments.flag("passed", passed)

    def check(now: Session) -> events.Event:
        if now.phase != "verify":
            raise NotWaiting(f"session {now.id} has no fix to confirm: it is in phase {now.phase}")
        return events.Verified(verification=Verification(
            passed=passed, result="fixed" if passed else "failed", reasons=(f"{by}: {comment}",),
            notes=("checked by a person, not by a run", *since_the_fix(folder, now))))

    return _append(folder, check)


def give_data(session: str | Path, artifacts: Artifacts | Mapping[str, Any] | Sequence[str | Path], *,
              comment: str = "", workspace: str | Path | None = None) -> SessionResult:
    """Hand over what a session asked for; it goes on when it is resumed. Raises NotWaiting otherwise."""
    folder = find_session(session, Path(workspace) if workspace is not None else None)

    def check(now: Session) -> events.Event:
        if now.phase != "needs_data":
            raise NotWaiting(f"session {now.id} does not wait for data: it is in phase {now.phase}")
        return events.DataGiven(artifacts=now.artifacts.joined(artifacts_from(artifacts)), comment=comment)

    result = _append(folder, check)
    folder.forget_fingerprint()  # what was handed over may lie in the workspace
    return result


def _append(folder: SessionFolder, check: Callable[[Session], events.Event]) -> SessionResult:
    with folder.locked(), Journal(folder.journal) as journal:
        now = replay(journal.records)
        event = check(now)
        advance(now, event)
        journal.append("event", event.to_json())
    return read_result(folder.path)


def read_result(session: str | Path, *, workspace: str | Path | None = None) -> SessionResult:
    """Where a session stands, read from disk without changing anything."""
    folder = find_session(session, Path(workspace) if workspace is not None else None)
    return result_of(folder)


def list_sessions(workspace: str | Path) -> tuple[SessionResult, ...]:
    """All readable sessions of a workspace, the oldest first."""
    found = []
    for path in folders(Path(workspace).absolute() / SCRATCH):
        try:
            found.append(result_of(SessionFolder(path)))
        except (TraindxError, OSError):
            continue  # cut off before its first record, or damaged: `read_result` of it says what is wrong
    return tuple(found)


def record_knowledge(session: str | Path, *, consent: bool, workspace: str | Path | None = None) -> tuple[str, ...]:
    """Add what a solved session taught to `.agents/knowledge/` and `MEMORY.md`; returns the files that changed.

    Raises BadUsage without consent, NotWaiting for a session that was not solved.
    """
    folder = find_session(session, Path(workspace) if workspace is not None else None)
    if not arguments.flag("consent", consent):
        raise BadUsage("the project's notes are only written with the user's consent")
    with folder.locked():
        now = read_session(folder)
        if now.phase != "done" or not any(a.verification and a.verification.passed for a in now.attempts):
            raise NotWaiting(f"session {now.id} has nothing to record: no fix was verified (phase {now.phase})")
        return add_knowledge(folder.workspace, now.id, documents.offer(now, read_knowledge(folder.workspace)))


def reopen_approach(workspace: str | Path, approach: Approach, *, by: str, reason: str) -> None:
    """A person's explicit decision that an approach with three strikes may be tried again, and why."""
    if not reason.strip():
        raise BadUsage("reopening an approach needs a reason: what is different now?")
    Ledger(Path(workspace).absolute()).reopen(approach, by, reason)
