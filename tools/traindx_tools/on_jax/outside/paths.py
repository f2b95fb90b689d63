"""A value by the way that leads to it: a name in the surroundings of a function, then attributes and entries.

Nothing of the user's is run on the way: an attribute is taken from where the object keeps it, a property never asked.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "nothing"})()
_KEPT_IN = ("_fields", "_content")
"""Where configurations of libraries keep what they give as attributes."""


@dataclass(frozen=True)
class Path:
    """`root`: a cell, a dict of globals with a name, or the object itself. `steps`: ("." or "[", key) each."""

    root: Any
    name: str
    kind: str
    """"cell", "global" or "object"."""
    steps: tuple[tuple[str, Any], ...] = ()

    def further(self, how: str, key: Any) -> Path:
        """One attribute or entry on."""
        return Path(self.root, self.name, self.kind, (*self.steps, (how, key)))

    def owner(self) -> Path:
        """What the last step is asked of."""
        return Path(self.root, self.name, self.kind, self.steps[:-1])

    def value(self) -> Any:
        """What is there now, MISSING where nothing is or asking would run code."""
        found = _start(self)
        for how, key in self.steps:
            if found is MISSING:
                break
            found = attribute(found, key) if how == "." else entry(found, key)
        return found

    def __str__(self) -> str:
        return self.name + "".join(f".{key}" if how == "." else f"[{key!r}]" for how, key in self.steps)


def _start(path: Path) -> Any:
    if path.kind == "object":
        return path.root
    if path.kind == "global":
        return path.root.get(path.name, MISSING)
    try:
        return path.root.cell_contents
    except ValueError:  # not yet filled
        return MISSING


def attribute(owner: Any, name: str) -> Any:
    """An attribute from where the object or its class keeps it."""
    own = getattr(owner, "__dict__", None)
    if isinstance(own, Mapping):
        if name in own:
            return own[name]
        for place in _KEPT_IN:
            if isinstance(own.get(place), Mapping) and name in own[place]:
                return _bare(own[place][name])
    if isinstance(owner, tuple) and name in getattr(type(owner), "_fields", ()):
        return owner[type(owner)._fields.index(name)]  # type: ignore[attr-defined]
    found = inspect.getattr_static(owner, name, MISSING)
    if inspect.ismemberdescriptor(found):  # a slot
        return found.__get__(owner) if hasattr(owner, name) else MISSING
    return found.__func__ if isinstance(found, staticmethod) else found


def entry(owner: Any, key: Any) -> Any:
    """An entry of a dict, list or tuple."""
    if isinstance(owner, dict):
        return dict.get(owner, key, MISSING)
    if isinstance(owner, (list, tuple)) and isinstance(key, int) and -len(owner) <= key < len(owner):
        return owner[key]
    return attribute(owner, key) if isinstance(key, str) and hasattr(owner, "__dict__") else MISSING


def _bare(node: Any) -> Any:
    return vars(node)["_val"] if "_val" in getattr(node, "__dict__", {}) else node
