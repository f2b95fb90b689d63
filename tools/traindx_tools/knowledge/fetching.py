"""What happens when a sample is fetched, read from `data.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from traindx_tools.knowledge.tables import table, words

DRAWING = words("data.toml", "draws", "calls")
"""Functions that draw from a global generator."""
GENERATORS = words("data.toml", "draws", "own")
"""Objects that draw and hold a state of their own."""
FIXES_DRAWS: str = table("data.toml")["draws"]["keyword"]
"""The keyword by which a draw is given a generator."""
NOISE = words("data.toml", "draws", "noise")
"""Functions that draw from a normal distribution."""
MOVING = words("data.toml", "moves", "methods")
"""Methods and functions that move things in space."""


@cache
def slow_calls() -> Mapping[str, tuple[str, bool]]:
    """Calls for which a sample waits: what each does, and whether the processor is idle meanwhile."""
    return {name: (row["what"], bool(row.get("idle"))) for row in table("data.toml")["slow"] for name in row["calls"]}


def is_random_transform(name: str) -> bool:
    """Whether a class of a library, by its whole name, draws at each call."""
    row, short = table("data.toml")["transforms"], name.rpartition(".")[2]
    draws = short in row["names"] or short.startswith(tuple(row["begins"]))
    return draws and name.startswith(tuple(row["libraries"]))


def is_container(name: str) -> bool:
    """Whether a class of transforms applies those that it is given."""
    return name.rpartition(".")[2] in table("data.toml")["transforms"]["containers"]


def moves_at_random(name: str) -> bool:
    """Whether a transform of a library, by its whole name, draws how it moves things in space."""
    row = table("data.toml")
    of_library = name.startswith(tuple(row["transforms"]["libraries"]))
    return of_library and name.rpartition(".")[2] in row["moves"]["transforms"]


def lies_by_class(kind: str) -> str:
    """Why the samples of a data set of a library lie class by class; "" where they need not."""
    return str(table("data.toml")["ordered"].get(kind, ""))


def keeps_statistics(kind: str) -> bool:
    """Whether a layer or a network, by its whole name, keeps running statistics in buffers."""
    row = table("data.toml")["statistics"]
    return kind.rpartition(".")[2] in row["layers"] or kind.startswith(tuple(row["networks"]))
