"""Functions that a compiler traces once and calls again, and keys that draws share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from traindx_tools.program.moments import Spot


@dataclass(frozen=True)
class OutsideRead:
    """A Python value that traced code reads from outside, and that is set anew afterwards."""

    text: str
    at: Spot
    changed: Spot
    change: str
    """What sets it, as it is written."""
    via: str = ""
    """The function in which it is read, where that is not the traced one."""
    of_static_self: bool = False
    """Whether it is an attribute of an object that a decorator made static."""


@dataclass(frozen=True)
class Effect:
    """What happens once, while tracing: `kind` is "random", "clock", "iterator", "print", "append", "attribute",
    "counter" or "global"."""

    kind: str
    text: str
    at: Spot


@dataclass(frozen=True)
class TracedFunction:
    """One function that is traced: `how` is the transformation's name."""

    name: str
    how: str
    at: Spot
    reads: tuple[OutsideRead, ...] = ()
    effects: tuple[Effect, ...] = ()
    plain_self: str = ""
    """The class of the object that is traced though it is no tree of arrays."""


@dataclass(frozen=True)
class CompiledAnew:
    """A compilation in each turn of a loop: of a new function object (`by`: in the function that the loop calls), or
    for each value of a `static` parameter."""

    text: str
    at: Spot
    loop: Spot
    by: str = ""
    static: str = ""


@dataclass(frozen=True)
class SharedKey:
    """A draw whose key was used before, or is the same. `kind`: "reuse", "loop", "scan", "state", "map", "rows" (of a
    map) or "list"."""

    kind: str
    text: str
    at: Spot
    why: str
    """Where the key was used before, or why it is the same each time."""
    trains: bool = True
    """Whether what is repeated trains."""
    certain: bool = True
    by_path: bool = False
    """Whether a library folds the path of a module into the key before it draws."""
    origin: Any = None
