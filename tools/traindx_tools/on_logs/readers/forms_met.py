"""Whether the examples of lines that a person gave are like any line, and what there is where they are not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers.line_forms import LineForm
from traindx_tools.on_logs.readers.lines import ESCAPE
from traindx_tools.on_logs.readers.unread import SHOWN, quoted


def require_matches(forms: Iterable[LineForm], sources: Sequence[Source]) -> None:
    """Raises UnreadableInput, with the first lines that hold numbers, where no line of any source had a shape."""
    missing = next((f for f in forms if not f.optional and not any(f.text in s.formed for s in sources)), None)
    if missing is not None:
        seen = "; ".join(f"{s.name}, {quoted(lines)}" for s in sources[:SHOWN] if (lines := _numbered(s)))
        raise UnreadableInput(f"--line {missing.text!r}: no line is like it. There are lines such as {seen or 'none'}. "
                              "{} passes over what differs from line to line; a step is a whole number")


def _numbered(source: Source) -> list[tuple[int, str]]:
    """The first lines of a text that hold a number."""
    with suppress(OSError):
        if not is_binary(source.head):
            lines = ESCAPE.sub("", source.text_head.decode("utf-8", "replace")).splitlines()
            return [(i, t) for i, t in enumerate(lines, 1) if any(c.isdigit() for c in t)][:SHOWN]
    return []
