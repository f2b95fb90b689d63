"""What the frames of an error still hold: the tensors of the call that failed."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any


def frames(error: BaseException) -> Iterator[Any]:
    """The frames of an error and of what it came from, the innermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        stack = []
        trace: TracebackType | None = current.__traceback__
        while trace is not None:
            stack.append(trace.tb_frame)
            trace = trace.tb_next
        yield from reversed(stack)
        current = current.__cause__ or current.__context__


def call_of(error: BaseException, function: str, file: str) -> dict[str, Any] | None:
    """The local names of the innermost call of a function in a file whose path ends with `file`."""
    for frame in frames(error):
        if frame.f_code.co_name == function and frame.f_code.co_filename.replace("\\", "/").endswith(file):
            return dict(frame.f_locals)
    return None


def user_line(error: BaseException) -> tuple[str, int] | None:
    """File and line of the innermost frame that belongs to no installed package."""
    trace = error.__traceback__
    found = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "site-packages" not in file and "traindx_tools" not in file and not file.startswith("<"):
            found = (file, trace.tb_lineno)
        trace = trace.tb_next
    return found
