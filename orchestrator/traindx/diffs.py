"""Proposed edits as unified diffs, from the diagnosis alone: no file is read."""

from __future__ import annotations

from collections.abc import Iterable

from traindx.model import Fix, ProposedEdit
from traindx.safe_text import block


def diff_of(fix: Fix) -> str:
    """All edits of a fix as one unified diff, without context lines; "" where it has none."""
    return diff_of_edits(fix.edits)


def diff_of_edits(edits: Iterable[ProposedEdit]) -> str:
    """Edits as one unified diff, without context lines; "" where there are none."""
    by_path: dict[str, list[ProposedEdit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    return "\n".join(line for path, own in by_path.items() for line in _file(path, own))


def _file(path: str, edits: Iterable[ProposedEdit]) -> Iterable[str]:
    yield f"--- a/{path}"
    yield f"+++ b/{path}"
    shift = 0
    for edit in sorted(edits, key=lambda e: (e.line, e.end_line)):
        old, new = _lines(edit.original), _lines(edit.replacement)
        yield f"@@ -{_span(edit.line, len(old))} +{_span(edit.line + shift, len(new))} @@"
        yield from (f"-{text}" for text in old)
        yield from (f"+{text}" for text in new)
        shift += len(new) - len(old)


def _lines(text: str) -> list[str]:
    return block(text).removesuffix("\n").split("\n") if text else []


def _span(line: int, count: int) -> str:
    """An empty side names the line before it, as diff does."""
    return f"{line},{count}" if count else f"{line - 1},0"
