"""What a session is at after the decision of a review, for the page that follows it: from the journal alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from traindx.hindrances import tail
from traindx.journal import Record, read_journal
from traindx.model import now
from traindx.session_result import SessionResult
from traindx.verify import shown
from traindx_tools.errors import TraindxError

LINES = 6
"""Of the running command's output that are shown, the last."""


@dataclass(frozen=True)
class Progress:
    """`said`: what goes on, a sentence each; `output`: the end of what the running command printed."""

    said: tuple[str, ...]
    output: str = ""


def progress_of(result: SessionResult) -> Progress:
    """What goes on in a session that another thread or process drives."""
    folder = Path(result.folder)
    try:
        records = read_journal(folder / "journal.jsonl")
    except (TraindxError, OSError):
        return Progress((result.reason,))
    begun = _under_way(records)
    if begun is None:
        running = result.status == "running"
        return Progress((f"{result.reason.capitalize()}." if running else "It is being taken up.",))
    key = str(begun.body["key"])
    since = (now() - datetime.fromisoformat(begun.at)).total_seconds()
    command = begun.body.get("command", "")
    typed = shown(tuple(command) if isinstance(command, list) else str(command))
    return Progress(tuple(_said(key, typed, since)), _output(folder, key))


def _under_way(records: list[Record]) -> Record | None:
    """The last run that was begun and has not ended."""
    ended = {r.body.get("key") for r in records if r.kind == "finish"}
    runs = [r for r in records if r.kind == "begin" and str(r.body.get("key", "")).startswith(("attempt-", "baseline-"))
            and not str(r.body["key"]).startswith("baseline-place-")]
    return runs[-1] if runs and runs[-1].body["key"] not in ended else None


def _said(key: str, command: str, since: float) -> Iterator[str]:
    where = "on the unfixed code, in a copy" if key.startswith("baseline-") else "with the change, in your workspace"
    yield f"`{command}` runs {where}, since {since:.0f} s."


def _output(folder: Path, key: str) -> str:
    """Of a run with the change; that on the unfixed code lies elsewhere and says nothing of the fix."""
    log = folder / "verify" / key / "output.log"
    if not key.startswith("attempt-") or log.is_symlink() or not log.is_file():
        return ""
    return "\n".join(tail(log).splitlines()[-LINES:])
