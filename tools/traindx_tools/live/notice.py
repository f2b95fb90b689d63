"""One line on standard error for a person: what became of an instrument. Never raises."""

from __future__ import annotations

import contextlib
import sys

MOST = 20
"""Lines of one process: after these it is silent."""
_said: list[str] = []


def say(text: str) -> None:
    """Prints the line, once for each text, and never to a standard error that is gone."""
    if text in _said or len(_said) >= MOST:
        return
    _said.append(text)
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or a program without standard error
        print(f"traindx: {text[:400]}", file=sys.stderr, flush=True)
