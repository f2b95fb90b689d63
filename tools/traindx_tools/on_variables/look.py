"""One look at the user's variables: containers that gather entries with arrays, and the arrays that stand alone.

Entries are arrays, or tuples, lists, dicts and plain objects with arrays as their parts: a replay memory of
`(state, action, reward, next_state)`, a list of predictions. Only arrays in the host's memory that no gradient goes to
are told: parameters and what a graph hangs on are other instruments' matter. The walk is bounded and copies nothing.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_variables.roots import is_users, roots
from traindx_tools.on_variables.visiting import is_of_jax
from traindx_tools.on_variables.walk import PLAIN, children, own

MOST_OBJECTS = 100_000
MOST_DEPTH = 6
LEAST_ENTRIES = 8
"""Entries from which a container is looked at as a history."""
MOST_ENTRIES = 4_000
"""Entries of one history that are looked at, the last ones."""
MOST_PARTS = 16
MOST_ARRAYS = 512
MOST_OF_JAX, MOST_BYTES = 64, 2**22
_NO_OWNERS = frozenset({"builtins", "collections", "types", "functools", "__main__"})
"""Modules whose objects are containers, functions, or the program's own."""
Place = tuple[str, str, str]
"""File, function ("" for a global) and path of a variable."""


@dataclass(eq=False)
class History:
    """What gathers entries; several containers of one path (`episodes[*]`) are one history."""

    place: Place
    owner: tuple[str, str] | None = None
    """File and name of the program's own class whose attribute it is, where there is one."""
    total: int = 0
    entries: list[Any] = field(default_factory=list)

    def parts(self) -> Mapping[str, Sequence[Any]]:
        """The arrays by the name of the part: "" for entries that are arrays, `[0]`, `['obs']`, `.obs`."""
        found: dict[str, list[Any]] = {}
        for entry in self.entries:
            for name, array in parts_of(entry):
                found.setdefault(name, []).append(array)
        return found


@dataclass(eq=False)
class Look:
    """Histories by place, and single arrays with their places."""

    histories: dict[Place, History] = field(default_factory=dict)
    arrays: list[tuple[Place, Any]] = field(default_factory=list)
    of_jax: list[tuple[Place, Any]] = field(default_factory=list)
    """Arrays of jax with one or two axes that can be read here; what an object of an installed class holds is not."""
    owners: dict[Place, tuple[str, str]] = field(default_factory=dict)
    """File and name of the class whose attribute a single array is."""
    installed: set[Place] = field(default_factory=set)
    """Single arrays that an object of an installed class holds: its own business, such as an optimizer's moments."""


def take_look(seconds: float = 0.2) -> Look:
    """Walks the variables, the nearest first, for at most `seconds` of this thread's CPU time."""
    deadline, look, seen, visited = time.thread_time() + seconds, Look(), set[int](), 0
    starts = list(roots())
    queue: deque[tuple[Place, Any, int, tuple[str, str] | None, bool]] = deque(
        ((file, function, name), value, 0, None, False) for file, function, name, value in starts)
    seen |= {id(look), id(queue), id(starts), id(seen)}
    while queue and visited < MOST_OBJECTS and (visited % 128 or time.thread_time() < deadline):
        place, value, depth, owner, installed = queue.popleft()
        if id(value) in seen or issubclass(type(value), PLAIN) or _ours(value):
            continue
        seen.add(id(value))
        visited += 1
        if is_array(value) or _is_table(value):
            if len(look.arrays) < MOST_ARRAYS:
                look.arrays.append((place, value))
                if owner is not None:
                    look.owners[place] = owner
                if installed:
                    look.installed.add(place)
        elif is_of_jax(value):
            if not installed and len(look.of_jax) < MOST_OF_JAX and is_readable(value):
                look.of_jax.append((place, value))
        elif not installed and (entries := _entries(value)):
            history = look.histories.setdefault(place, History(place, owner))
            history.total += len(entries)
            history.entries += entries[-max(0, MOST_ENTRIES - len(history.entries)):]
        elif depth < MOST_DEPTH:
            own_class = _owner(value)
            theirs = own_class is None and (installed or _is_installed(value))
            queue.extend(((*place[:2], place[2] + step), child, depth + 1, own_class or owner, theirs)
                         for step, child, _ in children(value))
    return look


def _ours(value: Any) -> bool:
    return str(type(value).__module__).startswith("traindx_tools.")


def _owner(value: Any) -> tuple[str, str] | None:
    kind = type(value)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return (file, kind.__name__) if isinstance(file, str) and is_users(file) else None


def _is_installed(value: Any) -> bool:
    """Whether it is an object of an installed package's class; containers and functions are whose they stand in."""
    module = str(type(value).__module__)
    return module.partition(".")[0] not in _NO_OWNERS and not is_users(
        str(getattr(sys.modules.get(module), "__file__", None) or ""))


def _entries(value: Any) -> list[Any]:
    """The entries of a container that gathers arrays; an empty list of any other value."""
    kind = type(value)
    if issubclass(kind, dict):
        entries = list(dict.values(value))
    elif base := next((b for b in (list, deque) if issubclass(kind, b)), None):
        entries = list(base.__iter__(value))
    else:
        return []
    if len(entries) < LEAST_ENTRIES:
        return []
    some = (entries[0], entries[len(entries) // 2], entries[-1])
    alike = len({type(e) for e in some}) == 1
    return entries if alike and all(next(parts_of(e), None) is not None for e in some) else []


def is_array(value: Any) -> bool:
    """A numpy array, or a torch tensor in the host's memory that no gradient goes to; of two elements or more."""
    if issubclass(type(value), np.ndarray):
        return bool(value.dtype != object and value.size > 1)
    torch: Any = sys.modules.get("torch")
    if torch is None or type(value) is not torch.Tensor:
        return False
    return bool(value.device.type == "cpu" and value.layout == torch.strided and not value.requires_grad
                and value.numel() > 1)


def is_readable(value: Any) -> bool:
    """Whether an array of jax is here, not given away, has one or two axes and is no parameter by its size."""
    return bool(value.ndim in (1, 2) and value.is_fully_addressable and not value.is_deleted()
                and value.nbytes <= MOST_BYTES)


def _is_table(value: Any) -> bool:
    pandas: Any = sys.modules.get("pandas")
    kinds = tuple(k for k in (getattr(pandas, "DataFrame", None), getattr(pandas, "Series", None)) if k)
    return bool(kinds) and isinstance(value, kinds)


def parts_of(entry: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of one entry with their names."""
    if is_array(entry):
        yield "", entry
        return
    kind = type(entry)
    if issubclass(kind, PLAIN):
        return
    if issubclass(kind, dict):
        named = [(f"[{key!r}]", value) for key, value in list(dict.items(entry))[:MOST_PARTS]]
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
        named = [(f".{name}", value) for name, value in zip(kind._fields, tuple.__iter__(entry), strict=False)]
    elif base := next((b for b in (list, tuple) if issubclass(kind, b)), None):
        named = [(f"[{i}]", v) for i, v in zip(range(MOST_PARTS), base.__iter__(entry), strict=False)]
    elif _is_table(entry) or "torch" in str(kind.__module__).split(".")[:1]:
        return
    else:
        named = [(f".{name}", value) for name, value in list(own(entry).items())[:MOST_PARTS]]
    yield from ((name, value) for name, value in named if is_array(value))
