"""The settings as the program holds them while it trains: mappings among its variables, by their keys.

A program reads several files and puts them together; what came out stands in a variable. Only keys are kept, of
mappings whose keys are texts, and of plain objects that hold such (`argparse.Namespace`): nothing is copied.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from traindx_tools.on_variables.roots import roots

MOST_KEYS, DEEPEST, MOST_KEPT = 500, 6, 50
SECONDS = 0.05
"""Of one thread's processor time that a look may take."""


@dataclass(frozen=True)
class Composed:
    """One mapping. `where`: file, function and variable; `maps`: the keys of each map in it, by its path."""

    where: tuple[str, str, str]
    maps: Mapping[tuple[str, ...], frozenset[str]] = field(default_factory=dict)


_kept: list[Composed] = []


def look() -> None:
    """Keeps what the variables hold now, in the place of what an earlier look kept."""
    until = time.thread_time() + SECONDS
    found: list[Composed] = []
    seen: set[int] = set()
    for file, function, name, value in roots():
        if len(found) >= MOST_KEPT or time.thread_time() > until:
            break
        inner = _mapping(value)
        if inner is None or id(value) in seen:
            continue
        seen.add(id(value))
        maps = dict(_maps(inner, (), [MOST_KEYS]))
        if len(maps) > 1:
            found.append(Composed((file, function, name), maps))
    _kept[:] = found


def kept() -> tuple[Composed, ...]:
    """What the last look kept."""
    return tuple(_kept)


def _mapping(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, (Namespace, SimpleNamespace)):
        value = vars(value)
    if not isinstance(value, dict) or not value or len(value) > MOST_KEYS:
        return None
    return value if all(isinstance(k, str) for k in value) else None


def _maps(value: Mapping[str, Any], path: tuple[str, ...],
          left: list[int]) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    left[0] -= len(value)
    if left[0] < 0 or len(path) > DEEPEST:
        return
    yield path, frozenset(value)
    for key, inner in list(value.items()):
        below = _mapping(inner)
        if below is not None:
            yield from _maps(below, (*path, key), left)
