"""Take an applied fix back that nobody judged: neither a strike nor a word against its cause.

A session that was interrupted while its fix was verified leaves the fix in the files. Whoever wants them as they were
has seen nothing of the fix, so nothing is recorded against it: the diagnosis waits at the gate again.
"""

from __future__ import annotations

from pathlib import Path

from traindx.investigators.offline import OfflineInvestigator
from traindx.machine import UNJUDGED
from traindx.session_folder import find_session
from traindx.session_result import SessionResult, result_of
from traindx.steps.fixing import undo
from traindx.turn import Turn
from traindx_tools.errors import TraindxError


class NothingToUndo(TraindxError):
    """The session has no fix in the files that is not settled."""


def undo_fix(session: str | Path, *, by: str = "user", comment: str = "",
             workspace: str | Path | None = None) -> SessionResult:
    """Put back what the session's fix changed and is not verified yet; the diagnosis waits for a decision again.

    No strike is counted and nothing is said of the cause. Raises NothingToUndo where no fix stands, PatchRefused where
    its lines were changed since (then nothing is touched), SessionBusy while another process holds the session.
    """
    folder = find_session(session, Path(workspace) if workspace is not None else None)
    with folder.locked() as lock:
        turn = Turn(folder, OfflineInvestigator(), lock=lock)
        try:
            if turn.session.stands_in not in UNJUDGED:
                raise NothingToUndo(f"session {turn.session.id} has no fix in your files that is not settled: it is in "
                                    f"phase {turn.session.phase}")
            undo(turn, by, comment)
        finally:
            turn.journal.close()
    return result_of(folder)
