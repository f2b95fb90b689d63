"""The files that are followed: which were written to, which began anew, which are not there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs.artifacts import discover

Change = Literal["written", "shorter", "another", "gone", "back"]


@dataclass(frozen=True)
class State:
    """What tells one moment of a file from another."""

    inode: int
    size: int
    written: int


@dataclass
class Watched:
    """Files below the paths. `changes` compares them with what they were when it was called last."""

    paths: Sequence[str]
    files: dict[str, State | None] = field(default_factory=dict)
    """None for a file that was there and is not."""

    def changes(self) -> list[tuple[str, Change]]:
        """What happened to which file since the last call; all files are new to the first."""
        now = dict(self._now())
        found: list[tuple[str, Change]] = []
        for name in dict.fromkeys((*self.files, *now)):
            change = _change(self.files.get(name), now.get(name), known=name in self.files)
            if change is not None:
                found.append((name, change))
        self.files = {**dict.fromkeys(self.files), **now}
        return found

    @property
    def there(self) -> bool:
        """Whether at least one file is there."""
        return any(state is not None for state in self.files.values())

    def _now(self) -> Iterator[tuple[str, State]]:
        for path in self.paths:
            try:
                names = [str(s.local) for s in discover([path]).sources if s.local is not None]
            except UnreadableInput:
                continue  # it may come back
            for name in names:
                try:
                    seen = os.stat(name)
                except OSError:
                    continue
                yield name, State(seen.st_ino, seen.st_size, seen.st_mtime_ns)


def _change(before: State | None, now: State | None, known: bool) -> Change | None:
    if now is None:
        return "gone" if before is not None else None
    if before is None:
        return "back" if known else "written"
    if now.inode != before.inode:
        return "another"
    if now.size < before.size:
        return "shorter"
    return "written" if now != before else None
