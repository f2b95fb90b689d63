"""One process's turn with one session: its journal, its state, and the watch over the workspace.

An event is checked by the state machine, written down, and only then is the session in the new state. The workspace is
compared with what it held when it was last allowed to change; a difference halts the session and names the files.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from filelock import BaseFileLock, Timeout

from traindx import events
from traindx.as_known import changed_since
from traindx.investigators.base import Case, Investigator
from traindx.journal import Journal
from traindx.knowledge import read_knowledge
from traindx.machine import IllegalTransition, Session, advance
from traindx.model import Decision, Diagnosis, Fix, ProposedEdit
from traindx.notices import PHASE_WORDS, Hear, Notice, nobody
from traindx.patching import Store
from traindx.scoping import asked_of
from traindx.session_folder import LOCK_SECONDS, SessionBusy, SessionFolder, opening_of, replay
from traindx.stopping import ctrl_c_ends_a_prompt
from traindx.strikes import Ledger
from traindx.tried_diffs import TriedDiffs
from traindx.verify import Examine, NewRun, examine_with_instruments
from traindx.workspace import Fingerprinter

Approve = Callable[[Diagnosis], Any]
"""Asks a person: a Decision, an awaitable of one, or None for "not now", which leaves the session waiting on disk."""

Fixer = Callable[[Diagnosis, Fix], Any]
"""Turns the instructions of an approved option into `ProposedEdit`s (or an awaitable of them)."""

CALLBACK_FAILED = "the approval callback failed"
"""Begins the reason of an interruption that the caller's own code caused."""

SPENT = "the budget of "
"""Begins the reason of an interruption for want of time: the same budget again would end at the same place."""

NO_MORE = "the budget allows no more"
"""Ends the reason of one for want of tries."""

_WHEN = {"fix": "changed since the diagnosis", "verify": "changed since the fix was made, and not by it"}
"""Begins the reason of a halt, by phase."""

T = TypeVar("T")


class Interruption(Exception):
    """The session cannot go on by itself; the message says why. It is recorded, and the session can be resumed."""


class HaltRecorded(Exception):
    """A halt was recorded: leave the step."""


async def in_thread(call: Callable[..., T], *arguments: Any) -> T:
    """Run blocking work beside the event loop. Cancelled, it lets the work end first: nothing is left half-recorded."""
    work = asyncio.ensure_future(asyncio.to_thread(call, *arguments))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError:
                continue
        raise


class Turn:
    """Everything that the steps share. The session's lock is held while a turn lasts."""

    def __init__(self, folder: SessionFolder, investigator: Investigator, *, lock: BaseFileLock | None = None,
                 approve: Approve | None = None, fixer: Fixer | None = None,
                 examine: Examine = examine_with_instruments, clock: Callable[[], float] = time.monotonic,
                 report: bool = True, hear: Hear = nobody) -> None:
        self.folder = folder
        self.workspace: Path = folder.workspace
        self.investigator = investigator
        self.approve = approve
        self.fixer = fixer
        self.clock = clock
        self.hear = hear
        self.report = report
        """Whether report.html and its pictures are made."""
        self.asked: set[str] = set()
        self._lock = lock
        self._examine = examine
        self._open()
        for part in (*folder.path.glob(".traindx-*.part"), *folder.store.folder.glob(".traindx-*.part")):
            part.unlink(missing_ok=True)  # what a killed write left
        self.verify = self.opening.verify
        self.allow_run = self.opening.allow_run
        self.budget = self.opening.budget
        self.ledger = Ledger(self.workspace)
        self.tried = TriedDiffs(self.workspace)
        self.started = clock()
        self._prints = Fingerprinter(self.workspace, self.opening.unwatched)
        self._knowledge = read_knowledge(self.workspace)

    def _open(self) -> None:
        self.journal = Journal(self.folder.journal)
        self.opening = opening_of(self.journal.records)
        self.session = replay(self.journal.records)

    @property
    def store(self) -> Store:
        """Backups of what the session writes."""
        return self.folder.store

    @property
    def seconds_left(self) -> float:
        """Of this turn's budget."""
        return max(self.started + self.budget.seconds - self.clock(), 0.0)

    def record(self, event: events.Event) -> None:
        """Check the event, write it down, and only then be in the new state."""
        after = advance(self.session, event)
        self.journal.append("event", event.to_json())
        before, self.session = self.session, after
        self._tell(before)

    def _tell(self, before: Session) -> None:
        """Say what is new: evidence, and the phase that begins."""
        for e in self.session.evidence[len(before.evidence):]:
            self.hear(Notice("evidence", text=f"{e.id}  {e.statement}"))
        if self.session.phase != before.phase:
            self.hear(Notice("phase", text=PHASE_WORDS[self.session.phase]))

    def note(self, event: events.Event) -> None:
        """Record what the investigator said; what the protocol does not allow is its failure, not the session's."""
        try:
            self.record(event)
        except (IllegalTransition, ValueError) as error:
            raise self.investigator_failed(error) from error

    def investigator_failed(self, error: Exception) -> Interruption:
        """The interruption that tells of it."""
        return Interruption(f"the investigator {self.investigator.name!r} failed in {self.session.phase}: "
                            f"{type(error).__name__}: {error}")

    def examine(self, paths: Sequence[Path]) -> NewRun:
        """Read a run with the instruments. Raises Interruption where that fails."""
        try:
            return self._examine(paths)
        except Exception as error:
            raise Interruption(f"the run could not be read: {type(error).__name__}: {error}") from error

    # The watch

    def watch(self, only: Iterable[str] | None = None) -> None:
        """From here on, this is what the workspace holds.

        `only`: these files alone, as they are printed; what changed elsewhere is still to be told. Called before the
        record that says so: a kill in between repeats the step, and a step knows what is done.
        """
        now, before = self._prints.take(), self.folder.saved_fingerprint()
        self.folder.save_fingerprint(now if only is None or before is None else before.taking(now, set(only)))

    def contents(self) -> dict[str, str]:
        """What the workspace's files hold now, by path, as hashes."""
        return self._prints.take().contents

    def changed(self) -> tuple[str, ...]:
        """Files that are neither as they were when `watch` was last called, nor as the session's fix makes them."""
        before = self.folder.saved_fingerprint()
        if before is None:
            return ()
        return changed_since(before, self._prints.take(), self.session, self.journal.records, self.folder)

    def halt_if_changed(self, but: Iterable[str] = (), because: str = "") -> None:
        """Record a halt that names the changed files, and raise HaltRecorded.

        `but`: files that may have changed. `because`: who changed the others.
        """
        allowed = set(but)
        self.halt_for(tuple(p for p in self.changed() if p not in allowed), because)

    def halt_for(self, changed: Sequence[str], because: str = "") -> None:
        """The same, of files that are known to be changed; nothing where there are none."""
        if not changed:
            return
        shown = ", ".join(changed[:10]) + (" ..." if len(changed) > 10 else "")
        said = _WHEN.get(self.session.phase, f"changed while nothing may change ({self.session.phase})")
        self.record(events.Halted(halt="workspace-changed", files=tuple(changed),
                                  reason=f"{said}: {shown}{f'. {because}' if because else ''}"))
        raise HaltRecorded

    # The investigator

    def case(self) -> Case:
        """What is known, as the investigator sees it."""
        s = self.session
        return Case(
            workspace=self.workspace, scratch=self.folder.path, symptom=s.symptom, artifacts=s.artifacts,
            hypotheses=s.hypotheses, evidence=s.evidence, attempts=s.attempts, strike_level=s.strike_level,
            feedback=s.feedback, rejected=tuple(map(str, s.rejected)),
            refused=tuple(dict.fromkeys(map(str, (*s.struck_out, *self.ledger.struck_out())))),
            knowledge=self._knowledge, quick=s.quick, seconds_left=self.seconds_left, allow_run=self.allow_run,
            verify=self.verify, degraded=self.opening.degraded, files=self._files(),
            say=lambda text: self.hear(Notice("said", text=text)),
            asked=asked_of(self.opening.entry, self.opening.everything, self.verify.command if self.verify else None))

    def _files(self) -> str:
        """What the workspace is known to hold, in short: another content is another case."""
        known = self.folder.saved_fingerprint()
        return "" if known is None else known.digest()

    async def look(self, call: Callable[[Case], Awaitable[T]]) -> T:
        """One step of the investigator: in time, and with the workspace unchanged after it, however it ended."""
        spent = f"{SPENT}{self.budget.seconds:g} s for looking is spent"
        if self.seconds_left <= 0:
            raise Interruption(spent)
        case = self.case()
        try:
            result = await asyncio.wait_for(call(case), case.seconds_left)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await in_thread(self.halt_if_changed)
            late = isinstance(error, (TimeoutError, asyncio.TimeoutError)) and self.seconds_left <= 0
            raise Interruption(spent) if late else self.investigator_failed(error) from error
        await in_thread(self.halt_if_changed)
        return result

    # The person

    async def ask(self, approve: Approve, diagnosis: Diagnosis) -> Decision | None:
        """Ask without holding the session, so that it can be decided from elsewhere while a person thinks."""
        self.journal.close()
        if self._lock is not None:
            self._lock.release()
        problem: Exception | None = None
        decision: Decision | None = None
        try:
            with ctrl_c_ends_a_prompt():
                asked = approve(diagnosis)
            decision = await awaited(asked)
        except Exception as error:  # noqa: BLE001 - the callback is the caller's code; the session must survive it
            problem = error
        finally:
            self._take_lock()
            self._open()
        if problem is not None:
            raise Interruption(f"{CALLBACK_FAILED}: {type(problem).__name__}: {problem}") from problem
        return decision

    def _take_lock(self) -> None:
        if self._lock is None:
            return
        try:
            self._lock.acquire(timeout=LOCK_SECONDS)
        except Timeout as error:
            raise SessionBusy(f"session {self.session.id} went on in another process while this one waited") from error

    async def edits_of(self, fixer: Fixer, diagnosis: Diagnosis, fix: Fix) -> tuple[ProposedEdit, ...]:
        """What the caller's fixer makes of the approved instructions."""
        try:
            return tuple(await awaited(fixer(diagnosis, fix)))
        except Exception as error:
            raise Interruption(f"the fixer failed: {type(error).__name__}: {error}") from error


async def awaited(value: Any) -> Any:
    """The value, or what it resolves to."""
    return await value if isinstance(value, Awaitable) else value
