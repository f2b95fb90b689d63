"""What calls do to a training, read from `calls.toml`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from traindx_tools.program.timeline import Moment

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Effect:
    """One row: what a call of this name does where it is called on such an object."""

    moment: Moment
    on: str
    takes: tuple[int, str] | None = None
    """Position and keyword of what it is given: an optimizer, a loss, parameters."""
    bound: tuple[int, tuple[str, ...]] | None = None
    also: Moment | None = None


@cache
def effects() -> Mapping[str, tuple[Effect, ...]]:
    """The rows by the last part of a call's name. Raises ValueError where a row names an unknown moment."""
    found: dict[str, tuple[Effect, ...]] = {}
    for row in _table()["call"]:
        takes, bound = row.get("takes"), row.get("bound")
        effect = Effect(Moment(row["moment"]), row["on"], (takes[0], takes[1]) if takes else None,
                        (bound[0], tuple(bound[1:])) if bound else None,
                        Moment(row["also"]) if "also" in row else None)
        for name in row["names"]:
            found[name] = (*found.get(name, ()), effect)
    return found


@cache
def harmless() -> tuple[tuple[str, ...], frozenset[str]]:
    """Beginnings of the names of functions, and names of methods, that change no gradients whatever they are given."""
    table = _table()["harmless"]
    return tuple(table["prefixes"]), frozenset(table["methods"])


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("traindx_tools.knowledge").joinpath("calls.toml").read_text(encoding="utf-8"))
