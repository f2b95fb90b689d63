"""Proposed edits as unified diffs, from the diagnosis alone: no file is read.

What a person approves by them is what is written: every line stands there, and what nobody sees as its escape.
"""

from __future__ import annotations

from collections.abc import Iterable

from traindx.model import Fix, ProposedEdit
from traindx.safe_text import exact_lines
from traindx.unseen import escaped, unseen_in


def diff_of(fix: Fix) -> str:
    """All edits of a fix as one unified diff, without context lines; "" where it has none."""
    return diff_of_edits(fix.edits)


def diff_of_edits(edits: Iterable[ProposedEdit]) -> str:
    """Edits as one unified diff, without context lines; "" where there are none."""
    by_path: dict[str, list[ProposedEdit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    return "\n".join(line for path, own in by_path.items() for line in _file(path, own))


def changed_lines(edit: ProposedEdit) -> tuple[list[str], list[str]]:
    """The lines that go and those that come, as `patching` counts them, without their signs."""
    empty_ones = [""] * max(edit.end_line - edit.line + 1, 0)
    return exact_lines(edit.original) or empty_ones, exact_lines(edit.replacement)


def _file(path: str, edits: Iterable[ProposedEdit]) -> Iterable[str]:
    name = escaped(path, keep="")
    yield f"--- a/{name}"
    yield f"+++ b/{name}"
    shift = 0
    for edit in sorted(edits, key=lambda e: (e.line, e.end_line)):
        old, new = changed_lines(edit)
        yield f"@@ -{_span(edit.line, len(old))} +{_span(edit.line + shift, len(new))} @@"
        yield from (f"-{text}" for text in old)
        yield from (f"+{text}" for text in new)
        yield from (f"\\ as an escape above: {said}" for said in unseen_in(edit.replacement.replace("\r\n", "\n")))
        shift += len(new) - len(old)


def _span(line: int, count: int) -> str:
    """An empty side names the line before it, as diff does."""
    return f"{line},{count}" if count else f"{line - 1},0"
