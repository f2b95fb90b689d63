"""The records of kind "replica" of one process, read tolerantly: what is damaged is left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

KIND = "replica"
Digest = tuple[float, float, float]
"""The norm of some values, and their sums under two patterns of signs."""
MOST_RECORDS = 256
"""Of one process; a probe writes some eighty."""


@dataclass(frozen=True)
class Windows:
    """How DistributedDataParallel was used in the steps that were watched."""

    steps: int = 0
    passes: int = 0
    unsynchronised: int = 0
    """Steps whose last micro-batch ran its forward without synchronisation."""
    late: int = 0
    """Of these: the flag was set by the time of backward."""
    around: int = 0
    """Steps none of whose passes went through the wrapper."""
    turned: int = 0
    line: str = ""
    exchanges: bool = False
    """A collective ran within a forward pass."""
    apart: bool = False
    """Backward was called on more than one number: a stage of a pipeline."""
    hook: bool = False
    """A communication hook of the program's own reduces the gradients."""
    several: bool = False
    """There are several optimizers: steps and passes do not belong together."""


@dataclass
class Replica:
    """What one process told."""

    rank: int
    world: int
    job: str
    group: tuple[int, ...]
    names: tuple[str, ...]
    ddp: frozenset[str]
    """Parameters in a bucket of DDP."""
    constant: frozenset[str] = frozenset()
    """Parameters that began with one value everywhere."""
    weights: dict[int, dict[str, Digest]] = field(default_factory=dict)
    """By the number of steps before, then by name."""
    gradients: dict[int, dict[str, Digest]] = field(default_factory=dict)
    written: dict[int, tuple[float, ...]] = field(default_factory=dict)
    """Values of one weight that something other than the optimizer had written before this step."""
    windows: Windows = Windows()


def replica_of(records: Iterable[Mapping[str, Any]]) -> Replica | None:
    """One process from its records; None where it tells nothing, or nothing that can be read."""
    made: Replica | None = None
    for record in list(records)[:MOST_RECORDS]:
        try:
            if record.get("what") == "setup":
                made = _setup(record)
            elif made is not None:
                _add(made, record)
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return made


def _setup(record: Mapping[str, Any]) -> Replica:
    names = tuple(map(str, record["names"]))
    inside = frozenset(n for n, held in zip(names, record["ddp"], strict=True) if held)
    return Replica(int(record["rank"]), int(record["world"]), str(record["job"]),
                   tuple(map(int, record["group"])), names, inside)


def _add(made: Replica, record: Mapping[str, Any]) -> None:
    what = record.get("what")
    if what == "windows":
        known = {k: type(getattr(Windows, k))(record[k]) for k in Windows.__dataclass_fields__ if k in record}
        made.windows = Windows(**known)
        return
    step = int(record["step"])
    if what == "written":
        made.written[step] = tuple(map(float, record["values"]))
    elif what in ("weight", "gradient"):
        found = {n: d for n, d in zip(made.names, map(_digest, record["values"]), strict=True) if d is not None}
        (made.weights if what == "weight" else made.gradients)[step] = found
        if "constant" in record:
            made.constant = frozenset(n for n, c in zip(made.names, record["constant"], strict=True) if c)


def _digest(value: Any) -> Digest | None:
    if value is None:
        return None
    first, second, third = map(float, value)
    return (first, second, third) if all(map(math.isfinite, (first, second, third))) else None
