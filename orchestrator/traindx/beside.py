"""Other sessions of the same workspace: who is at work there, and that one fix at a time is applied.

Two sessions of one job do not share what they found. A fix that one applies changes the code that the other read, and
a verification of two fixes at once says nothing of either.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from traindx.changed_files import MEANWHILE, changed_files
from traindx.journal import read_journal
from traindx.machine import Session
from traindx.notices import PHASE_WORDS
from traindx.session_folder import SessionFolder, folders, read_session
from traindx.workspace import SCRATCH
from traindx_tools.errors import TraindxError

LOCK = ".fix.lock"
SECONDS = 5.0
"""How long a second session waits for the first to have its change in the files."""


class FixUnderWay(TraindxError):
    """Another session puts its change into this workspace at the moment."""


def beside(folder: SessionFolder) -> tuple[str, ...]:
    """A sentence for each other session of the workspace that is at work, has a fix under test or waits for a decision.

    One that is damaged drives nothing and is passed over.
    """
    return tuple(said for other, session in _others(folder) if (said := _said(other, session)))


def under_test(folder: SessionFolder) -> tuple[str, ...]:
    """Other sessions of the workspace whose fix is applied and not settled."""
    return tuple(session.id for _, session in _others(folder) if session.stands_in in ("verify", "strike"))


def unsettled(session: str) -> str:
    """Why no fix is applied beside that of another session, and what settles it."""
    return (f"one fix at a time: session {session} has one in this workspace that is not settled yet. Settle it first: "
            f"`traindx resume {session}` verifies it, `traindx resume {session} --undo` takes it back")


def fixed_meanwhile(folder: SessionFolder) -> str:
    """The verified fix of another session that came after this one's diagnosis, in a sentence; "" where none did."""
    since = _when(folder, "diagnosed")
    for other, session in _others(folder):
        last = session.attempts[-1] if session.attempts else None
        passed = last is not None and last.verification is not None and last.verification.passed
        if last is not None and passed and since and _when(other, "verified") > since:
            return (f"{MEANWHILE}{session.id} of this folder changed {', '.join(last.where)} "
                    f"({last.summary.rstrip('.')}) and verified it: what this diagnosis was made from is of before")
    return ""


def _when(folder: SessionFolder, kind: str) -> str:
    """When the last event of a kind was recorded, as it sorts; "" where none was."""
    with contextlib.suppress(TraindxError, OSError):
        at = [r.at for r in read_journal(folder.journal) if r.kind == "event" and r.body.get("kind") == kind]
        return at[-1] if at else ""
    return ""


@contextlib.contextmanager
def one_fix_at_a_time(workspace: Path) -> Iterator[None]:
    """Held from the look at other sessions to the record that the change is in the files. Raises FixUnderWay."""
    lock = FileLock(str(workspace / SCRATCH / LOCK), thread_local=False)
    try:
        lock.acquire(timeout=SECONDS)
    except Timeout as error:
        raise FixUnderWay("another session puts its change into this workspace at the moment: `traindx sessions` says "
                          "which. Resume this one when that one is settled") from error
    try:
        yield
    finally:
        lock.release()


def _others(folder: SessionFolder) -> Iterator[tuple[SessionFolder, Session]]:
    for path in folders(folder.workspace / SCRATCH):
        if path.name != folder.path.name:
            with contextlib.suppress(TraindxError, OSError):
                yield SessionFolder(path), read_session(SessionFolder(path))


def _said(other: SessionFolder, session: Session) -> str:
    if places := changed_files(session):
        return (f"session {session.id} of this folder has a fix in {', '.join(places)} that is not settled: the code "
                "as it is read here has it in it, and no other fix is applied before that one is settled")
    if other.is_driven:
        return (f"session {session.id} of this folder is at work as well ({PHASE_WORDS[session.phase]}): what it finds "
                "is not known here, and of two fixes only the first is applied")
    if session.phase == "gate":
        return (f"session {session.id} of this folder waits with a diagnosis for a decision: "
                f"`traindx show {session.id}`")
    return ""
