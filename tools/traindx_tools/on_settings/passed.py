"""Which settings of a configuration are handed to which call, by the keys under which they are read.

The configuration itself need not be known: `cfg["train"]["lr"]` is an item of an item of what was loaded. Where the
file lies beside the code and was read with it, its values carry their keys (`configuration.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Symbol, Value

MOST_KEYS = 8
"""Keys of one path that are followed."""


@dataclass(frozen=True)
class PassedSetting:
    """One argument of a call. `keys`: from the root of the configuration; `argument`: its name, "" by position."""

    file: str
    line: int
    end_line: int
    callee: str
    argument: str
    keys: tuple[str, ...]


def passed_settings(projects: Iterable[Project]) -> Iterator[PassedSetting]:
    """Every setting that is an argument of a call, in the order of the calls."""
    for project in projects:
        for event in project.events:
            if event.kind == "call":
                yield from _of_call(event)


def _of_call(event: Event) -> Iterator[PassedSetting]:
    named = (*(("", v) for v in event.args), *event.kwargs.items())
    for argument, value in named:
        keys = keys_of(value)
        if keys:
            last = int(getattr(event.node, "end_lineno", None) or event.line)
            yield PassedSetting(event.file.path, event.line, last, event.method, argument, keys)


def keys_of(value: Value) -> tuple[str, ...]:
    """The keys under which a value was read from a configuration; () where it was not, or something was made of it."""
    if isinstance(value, Const):
        return value.keys
    keys: list[str] = []
    at: Value | None = value
    while isinstance(at, Symbol) and at.role in ("item", "attribute") and len(keys) < MOST_KEYS:
        keys.append(at.name.strip("'\""))
        at = at.parent
    loaded = isinstance(at, Symbol) and at.role == "call"
    return tuple(reversed(keys)) if loaded else ()
