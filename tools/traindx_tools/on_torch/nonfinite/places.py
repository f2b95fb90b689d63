"""Which line of the user's code an operation belongs to."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from types import FrameType
from typing import Any

_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_STANDARD = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_ENGINE = ("autograd/graph.py", "_engine_run_backward")
"""Below this frame the autograd engine runs; frames above it called `backward`."""
USER, LIBRARY, INNER = "user", "library", "inner"


@dataclass(frozen=True)
class Place:
    """A line of code: of the user's own files, or of a library where no frame of the user's is near."""

    file: str
    line: int
    function: str
    library: str | None = None
    """`transformers/models/x.py:12`: the line of an installed package that the user's line led to."""

    @property
    def quote(self) -> str:
        """The text of the line, bounded; "" where it cannot be read."""
        return linecache.getline(self.file, self.line).strip()[:200]


@lru_cache(maxsize=4096)
def owner(file: str) -> str:
    """Whose file it is: the user's, an installed library's, or the machinery's (torch, Python, ours)."""
    path = os.path.abspath(file) if not file.startswith("<") else file
    if file.startswith("<") and not file.startswith(("<stdin", "<ipython", "<string")):
        return INNER
    if path.startswith(_OURS + os.sep):
        return INNER
    for folder in ("site-packages", "dist-packages"):
        _, found, rest = path.rpartition(f"{os.sep}{folder}{os.sep}")
        if found:
            return INNER if rest.split(os.sep)[0] in ("torch", "_distutils_hack", "functorch") else LIBRARY
    return INNER if path.startswith(_STANDARD) and os.sep in path else USER


def here(*, inside_engine: bool = False) -> Place | None:
    """The innermost line of the user's code on this thread's stack.

    `inside_engine`: only frames that the autograd engine called (a custom function's backward, a hook, a recomputed
    forward); None where there are none.
    """
    frame: FrameType | None = sys._getframe(1)
    library: str | None = None
    nearest: Place | None = None
    while frame is not None:
        code = frame.f_code
        if code is on_behalf_of.__code__:
            place: Place | None = frame.f_locals["place"]
            return replace(place, library=library) if place is not None else nearest
        if inside_engine and code.co_name == _ENGINE[1] and code.co_filename.endswith(_ENGINE[0]):
            return nearest
        whose = owner(code.co_filename)
        if whose is USER:
            return Place(os.path.abspath(code.co_filename) if code.co_filename[0] != "<" else code.co_filename,
                         frame.f_lineno, code.co_name, library)
        if whose is LIBRARY and library is None:
            library = f"{_short(code.co_filename)}:{frame.f_lineno}"
            nearest = Place(code.co_filename, frame.f_lineno, code.co_name, library)
        frame = frame.f_back
    return nearest


def on_behalf_of(place: Place | None, call: Callable[[], Any]) -> Any:
    """Calls something again that the program called at this place: what it does belongs there."""
    return call()


def recomputing() -> bool:
    """Whether activation checkpointing runs a forward pass again, on this thread."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith(os.path.join("torch", "utils", "checkpoint.py")):
            return True
        frame = frame.f_back
    return False


def _short(file: str) -> str:
    return file.replace(os.sep, "/").rpartition("-packages/")[2]
