"""What a diagnosis was made of, by content: the files that its options change, as they were when it was recorded."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from traindx.as_known import content_of, hash_of
from traindx.model import Diagnosis
from traindx.turn import Turn
from traindx.workspace import inside

MADE_OF = "made_of"


def remember(turn: Turn, diagnosis: Diagnosis) -> None:
    """Written down before the diagnosis itself: none is known without the files that it was made of."""
    root = turn.workspace.resolve()
    paths = {inside(turn.workspace, p).relative_to(root).as_posix() for f in diagnosis.options for p, _, _ in f.places}
    turn.journal.append("note", {MADE_OF: {p: hash_of(content_of(turn.workspace, p)) for p in sorted(paths)}})


def not_as_diagnosed(turn: Turn, paths: Collection[str]) -> list[str]:
    """Those of these files that hold something else than when the last diagnosis was made."""
    known = _known(turn)
    return [p for p in paths if p in known and hash_of(content_of(turn.workspace, p)) != known[p]]


def is_as_diagnosed(turn: Turn, path: str) -> bool:
    """Whether a file is known to hold what the last diagnosis was made of; its mode is another thing."""
    known = _known(turn)
    return path in known and hash_of(content_of(turn.workspace, path)) == known[path]


def _known(turn: Turn) -> Mapping[str, str | None]:
    """By path; a session of an earlier version has none."""
    notes = [r.body[MADE_OF] for r in turn.journal.records if r.kind == "note" and MADE_OF in r.body]
    return notes[-1] if notes else {}
