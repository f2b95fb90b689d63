"""A log that was written before a fix which a session of its folder verified since: it shows the run without it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Iterable, Iterator
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
    written = _times(workspace, logs)
    if not written:
        return ""
    newest = max(written, key=lambda log: written[log][1])
    fix = _last(workspace, written[newest][1])
    if fix is None:
        return ""
    name = _short(workspace, newest)
    of = name if len(written) == 1 else f"all that was read ({name} last)"
    return f"{of} {_before(fix)}. Run the training again and diagnose the new log"


def older_beside_newer(workspace: Path, logs: Iterable[str], named: Container[str]) -> tuple[tuple[Path, ...], str]:
    """The logs from before the last verified fix, where others were written since, and a sentence that says so.

    `named`: real paths that a person named one by one; these stay.
    """
    written = _times(workspace, logs)
    if len(written) < 2:
        return (), ""
    fix = _last(workspace, min(at for _, at in written.values()))
    old = {} if fix is None else {log: path for log, (path, at) in written.items() if at < fix[0]}
    left = {log: path for log, path in old.items() if os.path.realpath(path) not in named}
    if fix is None or not left or len(old) == len(written):
        return (), ""
    told = ", ".join(_short(workspace, log) for log in left)
    return tuple(left.values()), f"{told} {_before(fix)}. Not judged beside what was written since"


def _short(workspace: Path, log: str) -> str:
    """As seen from the workspace, which is how places are told."""
    for prefix in (f"{workspace}/", f"{workspace.resolve()}/"):
        log = log.removeprefix(prefix)
    return log


def _before(fix: tuple[float, str, Attempt]) -> str:
    _, session, made = fix
    return (f"was written before the fix that session {session} made and verified in {', '.join(made.where)} "
            f"({made.summary.rstrip('.')}): it shows the run without that fix")


def _last(workspace: Path, since: float) -> tuple[float, str, Attempt] | None:
    return max((f for f in _fixes(workspace, since) if f[0] > since), key=lambda f: f[0], default=None)


def _times(workspace: Path, logs: Iterable[str]) -> dict[str, tuple[Path, float]]:
    """The file of each log and when it was last written, in seconds since 1970; without what is no file."""
    found = {}
    for log in logs:
        for path in (workspace / log, Path(log)):
            with contextlib.suppress(OSError, ValueError):
                if path.is_file():
                    found[log] = path, path.stat().st_mtime
                    break
    return found


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
