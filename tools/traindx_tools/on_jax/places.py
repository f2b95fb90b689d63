"""Which line of the user's code an equation belongs to."""

from __future__ import annotations

import linecache
import os
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from traindx_tools.on_jax import internals

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STANDARD = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_MACHINERY = frozenset({"jax", "jaxlib"})
USER, LIBRARY, INNER = "user", "library", "inner"


@dataclass(frozen=True)
class Place:
    """A line of code: of the user's own files, or of a library where no frame of the user's is near."""

    file: str
    line: int
    function: str
    library: str | None = None
    """`optax/_src/transform.py:12`: the line of an installed package that the user's line led to."""

    @property
    def quote(self) -> str:
        """The text of the line, bounded; "" where it cannot be read."""
        return linecache.getline(self.file, self.line).strip()[:200]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@lru_cache(maxsize=4096)
def owner(file: str) -> str:
    """Whose file it is: the user's, an installed library's, or the machinery's (JAX, Python, ours)."""
    if file.startswith("<"):
        return USER if file.startswith(("<stdin", "<ipython", "<string")) else INNER
    path = os.path.abspath(file)
    if path.startswith(_OURS + os.sep):
        return INNER
    for folder in ("site-packages", "dist-packages"):
        _, found, rest = path.rpartition(f"{os.sep}{folder}{os.sep}")
        if found:
            return INNER if rest.split(os.sep)[0] in _MACHINERY else LIBRARY
    return INNER if path.startswith(_STANDARD) else USER


def is_users(file: str) -> bool:
    """Whether a file is the user's own."""
    return owner(file) is USER


def place_of(eqn: Any, around: Place | None = None) -> Place | None:
    """The innermost line of the user's code that made an equation, None where no frame of anybody's is known.

    `around`: the place of the call that the equation belongs to; it stands in where a library wrote the body of it.
    """
    found = _innermost(eqn)
    if found is None or (around is not None and owner(found.file) is not USER):
        return around or found
    return found


def within_jax(eqn: Any) -> bool:
    """Whether JAX itself applied an equation's operation, as softmax does stop_gradient to its maximum."""
    outermost = ""
    for file, _, function in internals.frames(eqn):
        if owner(file) is not INNER:
            break
        outermost = function.rpartition(".")[2]
    return outermost not in ("", eqn.primitive.name)


def _innermost(eqn: Any) -> Place | None:
    library: str | None = None
    nearest: Place | None = None
    for file, line, function in internals.frames(eqn):
        whose = owner(file)
        if whose is USER:
            path = file if file.startswith("<") else os.path.abspath(file)
            return Place(path, line, function.rpartition(".")[2], library)
        if whose is LIBRARY and library is None:
            library = f"{_short(file)}:{line}"
            nearest = Place(file, line, function, library)
    return nearest


def calls_around(eqn: Any) -> tuple[Place, ...]:
    """The lines of the user's code that were being run when an equation was made, the innermost first."""
    told = [(file if file.startswith("<") else os.path.abspath(file), line, function.rpartition(".")[2])
            for file, line, function in internals.frames(eqn) if owner(file) is USER]
    return tuple(Place(*frame) for frame in told)


def parting(one: tuple[Place, ...], other: tuple[Place, ...]) -> tuple[Place, Place] | None:
    """Where two chains of calls, the innermost first, part: two lines of one function that the user wrote.

    None where they do not: one line did both, such as a call within a loop.
    """
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if (a.file, a.function) != (b.file, b.function):
            return None
        if a.line != b.line:
            return a, b
    return None


def _short(file: str) -> str:
    return file.replace(os.sep, "/").rpartition("-packages/")[2]
