"""What of a workspace is not as a session knows it: changed since it last looked, and not by its own fix.

A session knows files by what they hold. Before a fix is written they are as they were when the diagnosis was made;
while one is being written, its files may be as they were or as the fix makes them; once it stands, as it made them and
no other way. What a person or another program changed is named, and is never taken for a part of the fix.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from traindx.journal import Record
from traindx.machine import Session
from traindx.patching import FileState, PatchRefused
from traindx.session_folder import SessionFolder
from traindx.workspace import Fingerprint, PathRefused, inside, printable

NOTEBOOK = ".ipynb"


def changed_since(before: Fingerprint, now: Fingerprint, session: Session, records: Sequence[Record],
                  folder: SessionFolder) -> tuple[str, ...]:
    """Files that are not as they were, and not as the session's fix makes them; sorted, as they are printed."""
    found = set(map(printable, before.changed(now)))
    if session.stands_in == "fix":
        found -= {s.path for s in begun_fix(records) if _is_either(folder.workspace, s)}
    elif session.stands_in == "verify":
        for s in applied_fix(session, records):
            if not as_fixed(folder, s):
                found.add(s.path)
            elif s.path.endswith(NOTEBOOK):
                found.discard(s.path)  # run in place: its outputs are others, its cells are those of the fix
    return tuple(sorted(found))


def as_fixed(folder: SessionFolder, state: FileState) -> bool:
    """Whether a file of an applied fix holds what the fix made of it; of a notebook its cells count."""
    content = content_of(folder.workspace, state.path)
    if hash_of(content) == state.after:
        return True
    if not state.path.endswith(NOTEBOOK) or content is None or state.after is None:
        return False
    try:
        return cells_of(content) == cells_of(folder.store.get(state.after)) != ""
    except PatchRefused:  # the backup is gone
        return False


def _is_either(workspace: Path, state: FileState) -> bool:
    content = content_of(workspace, state.path)
    if hash_of(content) not in (state.before, state.after):
        return False
    return content is None or (inside(workspace, state.path).stat().st_mode & 0o7777) == state.mode


def content_of(workspace: Path, path: str) -> bytes | None:
    """What a file of the workspace holds; None where there is none."""
    try:
        real = inside(workspace, path)
    except PathRefused:  # a link that leads out took its place
        return None
    return real.read_bytes() if real.is_file() else None


def hash_of(content: bytes | None) -> str | None:
    """sha256 (hex) of a content; None of none."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def cells_of(content: bytes) -> str:
    """A hash of what a notebook's cells hold, without their outputs; "" where it cannot be read."""
    try:
        cells = [(c["cell_type"], c["source"] if isinstance(c["source"], str) else "".join(c["source"]))
                 for c in json.loads(content)["cells"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def begun_fix(records: Sequence[Record]) -> tuple[FileState, ...]:
    """The files of the approved change whose writing began; () where none did."""
    return _files_of(records, "begin", f"fix-{decision_number(records)}")


def applied_fix(session: Session, records: Sequence[Record]) -> tuple[FileState, ...]:
    """The files of the last applied fix, as it found and made them."""
    return _files_of(records, "finish", f"applied-{session.attempts[-1].number}")


def _files_of(records: Sequence[Record], kind: str, key: str) -> tuple[FileState, ...]:
    found = [r.body["files"] for r in records if r.kind == kind and r.body.get("key") == key]
    return states_of(found[-1]) if found else ()


def decision_number(records: Sequence[Record]) -> int:
    """The number of the record in which the last decision was given: it names what belongs to it."""
    return max((r.number for r in records if r.kind == "event" and r.body.get("kind") == "decided"), default=0)


def states_of(files: Iterable[Mapping[str, object]]) -> tuple[FileState, ...]:
    """File states from a journal record."""
    return tuple(FileState.model_validate(f) for f in files)
