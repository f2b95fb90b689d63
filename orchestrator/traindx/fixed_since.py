"""A log that was written before a fix which a session of its folder verified since: it shows the run without it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from traindx.journal import read_journal
from traindx.model import Attempt
from traindx.session_folder import SessionFolder, folders, replay
from traindx.workspace import SCRATCH
from traindx_tools.errors import TraindxError


def note_of(workspace: Path, logs: Iterable[str]) -> str:
    """In a sentence, that all these logs are of before the last verified fix of the workspace; "" where they are not.

    `logs`: as they are named from the workspace or the current directory; what is no file here says nothing.
    """
    written = {log: at for log in logs if (at := _written(workspace, log)) is not None}
    if not written:
        return ""
    newest = max(written, key=lambda log: written[log])
    fixes = [f for f in _fixes(workspace, written[newest]) if f[0] > written[newest]]
    if not fixes:
        return ""
    _, session, fix = max(fixes, key=lambda f: f[0])
    of = newest if len(written) == 1 else f"all that was read ({newest} last)"
    return (f"{of} was written before the fix that session {session} made and verified in {', '.join(fix.where)} "
            f"({fix.summary.rstrip('.')}): it shows the run without that fix. Run the training again and diagnose the "
            "new log")


def _written(workspace: Path, log: str) -> float | None:
    """When a file was last written, in seconds since 1970."""
    for path in (workspace / log, Path(log)):
        with contextlib.suppress(OSError, ValueError):
            if path.is_file():
                return path.stat().st_mtime
    return None


def _fixes(workspace: Path, since: float) -> Iterator[tuple[float, str, Attempt]]:
    """When each verified fix that stands was put into the files, the session, and the fix; of sessions since then."""
    for path in folders(workspace / SCRATCH):
        folder = SessionFolder(path)
        with contextlib.suppress(TraindxError, OSError, ValueError):
            if folder.journal.stat().st_mtime <= since:
                continue
            records = read_journal(folder.journal)
            last = next(reversed(replay(records).attempts), None)
            applied = [r.at for r in records if r.kind == "event" and r.body.get("kind") == "applied"]
            if last is not None and applied and not last.reverted and last.verification and last.verification.passed:
                yield datetime.fromisoformat(applied[-1]).timestamp(), path.name, last
