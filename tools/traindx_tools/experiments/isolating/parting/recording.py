"""What the digests of one run tell: events in order, by rank."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx_tools.live.digests import FILE_BOUND, MARK

OWN = frozenset({"traindx", "framework"})


@dataclass(frozen=True)
class Event:
    """One thing that was computed. `more`: digests of its rows (a batch), or of what a module was given."""

    step: int
    kind: str
    name: str
    digest: str
    more: Any = None

    @property
    def what(self) -> tuple[int, str, str]:
        """All but the value: of a loss the name is its value."""
        return self.step, self.kind, "" if self.kind == "loss" else self.name


@dataclass(frozen=True)
class Recording:
    """One process of one run."""

    rank: int
    surroundings: Mapping[str, Any]
    events: tuple[Event, ...]

    @property
    def steps(self) -> int:
        """Optimizer steps, or calls of compiled functions, that were recorded."""
        return len({e.step for e in self.events if e.kind in ("after the step", "result")})


def read_recordings(folder: Path) -> dict[int, Recording]:
    """The recordings below a folder by rank; what is damaged is left out."""
    found = {}
    for path in sorted(folder.rglob("digests-rank*.jsonl")):
        made = _read(path)
        if made is not None:
            found[made.rank] = made
    return found


def _read(path: Path) -> Recording | None:
    number = path.stem.removeprefix("digests-rank")
    try:
        with path.open("rb") as stream:
            lines = stream.read(2 * FILE_BOUND).splitlines()
        start = json.loads(lines[0])
    except (OSError, ValueError, IndexError):
        return None
    if not isinstance(start, dict) or start.get("traindx") != MARK or not number.isdigit():
        return None
    events = []
    for line in lines[1:]:
        try:
            row = json.loads(line)
            events.append(Event(int(row[0]), str(row[1]), str(row[2]), str(row[3]), row[4] if len(row) > 4 else None))
        except (ValueError, TypeError, IndexError):  # the last line of a process that was killed
            break
    return Recording(int(number), {k: v for k, v in start.items() if k not in OWN}, tuple(events))
