"""The user's own variables: where a search for what is kept begins.

A variable counts as the user's when its code lies outside the standard library and installed packages: a local of a
frame on some thread's stack, or a global of a module.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

_INSTALLED = ("site-packages", "dist-packages")
_LIBRARY = tuple(str(Path(p).resolve()) for p in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})


@cache
def is_users(file: str) -> bool:
    """Whether a source file belongs to the user: neither installed, nor of the standard library, nor ours."""
    if not file or (file.startswith("<") and not file.startswith("<ipython")):
        return False
    if any(folder in file for folder in _INSTALLED) or file.startswith(_LIBRARY):  # most files: no need to resolve
        return False
    path = str(Path(file).resolve())
    if any(f"/{folder}/" in path for folder in _INSTALLED) or "/traindx_tools/" in path:
        return False
    return not path.startswith(_LIBRARY)


def users_line() -> tuple[str, int] | None:
    """File and line of the user's code that is being run on this thread."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def _stacks() -> Iterator[FrameType]:
    for frame in sys._current_frames().values():
        at: FrameType | None = frame
        while at is not None:
            yield at
            at = at.f_back


def roots() -> Iterator[tuple[str, str, str, Any]]:
    """(file, function or "", name, value) for each variable of the user: locals of running frames, then globals."""
    for frame in _stacks():
        file, function = frame.f_code.co_filename, frame.f_code.co_name
        if is_users(file) and function != "<module>":  # a module's locals are its globals
            yield from ((file, function, name, value) for name, value in list(frame.f_locals.items()))
    for module in list(sys.modules.values()):
        source = getattr(module, "__file__", None)
        if isinstance(source, str) and is_users(source):
            yield from ((source, "", name, value) for name, value in list(vars(module).items())
                        if not name.startswith("__"))
