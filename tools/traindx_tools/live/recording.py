"""The recorder of one process: a bounded file of JSON lines and its summary, written so that a kill loses little.

Metrics are flushed every second, findings at once. The file appears with the first thing that is written: a process
that never trains (a launcher, a DataLoader worker) leaves none.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.live.rank import rank_here
from traindx_tools.live.settings import FILE_BOUND

FLUSH_SECONDS = 1.0
MOST_WAITING = 1_000
"""Records that are kept before they are written at the latest."""
MOST_FINDINGS = 500
"""Different findings of one process; what comes after is only counted."""
KEPT = 0.5
"""Share of the bound that is filled after the oldest metrics went."""


class FileRecorder:
    """Writes what the probes of this process see. No method raises: what cannot be written switches it off."""

    def __init__(self, folder: Path, *, bound: int = FILE_BOUND, mode: str = "watch",
                 rank: Callable[[], int] = rank_here) -> None:
        self._folder, self._bound, self._mode = folder, bound, mode
        self._find_rank = rank
        self._rank: int | None = None
        self._file: TextIO | None = None
        self._path: Path | None = None
        self._off = self._ended = False
        self._size, self._flushed = 0, 0.0
        self._waiting: list[tuple[int, dict[str, float]]] = []
        self._findings: dict[tuple[str, str], dict[str, Any]] = {}
        self._last: dict[str, float] = {}
        self._first_step: int | None = None
        self._last_step: int | None = None
        self._started = time.time()

    @property
    def rank(self) -> int:
        """The rank of this process: 0 where there is only one; fixed with the first record."""
        return self._find_rank() if self._rank is None else self._rank

    @property
    def batch_path(self) -> Path:
        """Where the batch that the program failed on is kept."""
        return self._folder / f"rank{self.rank:05d}.batch.npz"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of this process so far."""
        return tuple(Finding.from_json(f["finding"]) for f in self._findings.values())

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers of one optimizer step under canonical names; host values only."""
        if not values:
            return
        self._first_step = step if self._first_step is None else self._first_step
        self._last_step = step
        self._last.update(values)
        self._waiting.append((step, dict(values)))
        if time.monotonic() - self._flushed > FLUSH_SECONDS or len(self._waiting) >= MOST_WAITING:
            self.flush()

    def finding(self, finding: Finding) -> None:
        """One finding; a second one of the same rule at the same place is counted, not written again."""
        place = finding.where
        key = (finding.rule, f"{place.code} {place.module} {place.rank}" if place.code or place.module else str(place))
        known = self._findings.get(key)
        if known is not None:
            known["count"] += 1
            return
        if len(self._findings) >= MOST_FINDINGS:
            return
        self._findings[key] = {"count": 1, "finding": finding.to_json()}
        self.flush()
        self._write({"kind": "finding", "finding": finding.to_json()})
        self.flush()
        self._summary(None)

    def mark(self, kind: str, **fields: Any) -> None:
        """A record of a kind of its own, flushed at once."""
        self.flush()
        self._write({"kind": kind, **fields})
        self.flush()

    def end(self, how: str) -> None:
        """The last record: "ok" or the error with which the program ends. Later calls do nothing."""
        self.flush()
        if self._ended or self._file is None:
            return
        self._ended = True
        self._write({"kind": "end", "how": how[:2000], "seconds": round(time.time() - self._started, 3)})
        self.flush()
        self._summary(how[:2000])

    def let_go(self) -> None:
        """In a forked child: nothing is written, the parent's file is not ours."""
        self._file, self._path, self._off, self._waiting = None, None, True, []

    def after_fork(self) -> None:
        """In a forked child that trains: begins a file of its own."""
        self.__init__(self._folder, bound=self._bound, mode=self._mode, rank=self._find_rank)  # type: ignore[misc]

    def _open(self) -> TextIO:
        self._rank = self._find_rank()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file, self._path = _claim(self._folder, self._rank)
        start = {"traindx": "live", "kind": "start", "version": 1, "rank": self._rank, "pid": os.getpid(),
                 "mode": self._mode, "cwd": os.getcwd(), "argv": [a[:500] for a in sys.argv[:50]],
                 "started": self._started}
        self._line(self._file, start)
        return self._file

    def _write(self, record: Mapping[str, Any]) -> None:
        if self._off:
            return
        try:
            self._line(self._file or self._open(), record)
            if self._size > self._bound:
                self._drop_oldest()
        except (OSError, ValueError) as error:  # a full disk, a folder that went away, a closed file
            self._give_up(error)

    def _line(self, file: TextIO, record: Mapping[str, Any]) -> None:
        text = json.dumps(record) + "\n"
        file.write(text)
        self._size += len(text)

    def flush(self) -> None:
        """What was written so far goes to the system: a kill does not lose it."""
        self._flushed = time.monotonic()
        waiting, self._waiting = self._waiting, []
        for step, values in waiting:
            self._write({"kind": "metrics", "step": step, **{k: _plain(v) for k, v in values.items()}})
        if self._file is None or self._off:
            return
        try:
            self._file.flush()
        except (OSError, ValueError) as error:
            self._give_up(error)

    def _drop_oldest(self) -> None:
        """Writes the file again without its oldest metrics; findings, start and end stay."""
        assert self._file is not None
        assert self._path is not None
        self._file.close()
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = list(_newest(lines, int(self._bound * KEPT)))
        part = self._path.with_suffix(".part")
        part.write_text("".join(kept), encoding="utf-8")
        os.replace(part, self._path)
        self._file = self._path.open("a", encoding="utf-8")
        self._size = sum(map(len, kept))

    def _summary(self, ended: str | None) -> None:
        if self._off or self._path is None:
            return
        data = {"traindx": "live-summary", "rank": self.rank, "mode": self._mode, "cwd": os.getcwd(), "ended": ended,
                "first_step": self._first_step, "last_step": self._last_step,
                "last": {k: _plain(v) for k, v in list(self._last.items())[:200]},
                "findings": list(self._findings.values())}
        try:
            part = self._path.with_suffix(".summary.part")
            part.write_text(json.dumps(data, indent=1), encoding="utf-8")
            os.replace(part, self._path.with_suffix(".summary.json"))
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._off = True
        say(f"nothing more is recorded in {self._folder}: {error}; the training goes on")


def _claim(folder: Path, rank: int) -> tuple[TextIO, Path]:
    """A new file of this rank; another process of the same rank (two programs one after the other) has its own."""
    names = [f"rank{rank:05d}.jsonl", f"rank{rank:05d}.p{os.getpid()}.jsonl"]
    names += [f"rank{rank:05d}.p{os.getpid()}.{n}.jsonl" for n in range(1, 100)]
    for name in names:
        try:
            return (folder / name).open("x", encoding="utf-8"), folder / name
        except FileExistsError:
            continue
    raise OSError(f"{folder} holds too many files of rank {rank}")


def _newest(lines: list[str], bound: int) -> Iterable[str]:
    """The lines in order, without as many of the oldest metrics as it takes to stay below the bound."""
    metric = '{"kind": "metrics"'
    left = bound - sum(len(x) for x in lines if not x.startswith(metric))
    first = len(lines)
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].startswith(metric):
            left -= len(lines[index])
            if left < 0:
                break
        first = index
    return (x for i, x in enumerate(lines) if i >= first or not x.startswith(metric))


def _plain(value: float) -> float | str:
    number = float(value)
    return number if math.isfinite(number) else str(number)
