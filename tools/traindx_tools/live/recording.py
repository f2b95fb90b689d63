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
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.live.rank import rank_here
from traindx_tools.live.settings import FILE_BOUND

FLUSH_SECONDS = 1.0
FIRST_PAUSE = 0.03
"""Seconds from the first write to the next, doubled each time up to FLUSH_SECONDS: a run may be killed soon."""
MOST_WAITING = 1_000
"""Records that are kept before they are written at the latest."""
OURS = str(Path(__file__).resolve().parents[1])
"""The folder of traindx_tools."""
LONGEST_TRACE = 16_000
"""Characters of the traceback with which the program ended; of a longer one the beginning and the end are kept."""
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
        self._trace = self._facts = ""
        self._identity: tuple[int, int] | None = None
        self._size, self._flushed, self._pause = 0, 0.0, FIRST_PAUSE
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
    def began(self) -> bool:
        """Whether anything was recorded: this process trains."""
        return self._file is not None

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
        if time.monotonic() - self._flushed > self._pause or len(self._waiting) >= MOST_WAITING:
            self._pause = min(FLUSH_SECONDS, 2 * self._pause)
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

    def facts(self, text: str) -> None:
        """What the program is made of and does, as a short text; a later one stands in its place."""
        if text and text != self._facts:
            self._facts = text
            self.mark("facts", text=text)
            self._summary(None)

    def withdraw(self, rule: str, key: str, value: str) -> None:
        """Takes back the findings of a rule that measured this: a record of it follows theirs in the file."""
        gone = [k for k, f in self._findings.items()
                if f["finding"]["rule"] == rule and f["finding"]["measured"].get(key) == value]
        if gone:
            for k in gone:
                del self._findings[k]
            self.mark("withdrawn", rule=rule, key=key, value=value)
            self._summary(None)

    def mark(self, kind: str, **fields: Any) -> None:
        """A record of a kind of its own, flushed at once."""
        self.flush()
        self._write({"kind": kind, **fields})
        self.flush()

    def failed(self, error: BaseException) -> None:
        """The error that ends the program: its traceback goes into the last record."""
        try:
            told = traceback.TracebackException.from_exception(error)
            _without_our_frames(told)
            self._trace = _bounded("".join(told.format()))
        except Exception as failure:  # noqa: BLE001 - an exception's own __str__ may raise
            self._trace = f"{type(error).__name__} (its text cannot be made: {type(failure).__name__})"

    def end(self, how: str) -> None:
        """The last record: "ok" or the error with which the program ends. Later calls do nothing."""
        self.flush()
        if self._ended or (self._file is None and not self._trace):
            return
        self._ended = True
        trace = {"trace": self._trace} if self._trace else {}
        self._write({"kind": "end", "how": how[:2000], "seconds": round(time.time() - self._started, 3), **trace})
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
        self._identity = _identity(self._file)
        start = {"traindx": "live", "kind": "start", "version": 1, "rank": self._rank, "pid": os.getpid(),
                 "mode": self._mode, "cwd": _here(), "argv": [a[:500] for a in sys.argv[:50]],
                 "started": self._started}
        self._lines(self._file, [start])
        return self._file

    def _write(self, *records: Mapping[str, Any]) -> None:
        if self._off or not self._still_ours():
            return
        try:
            self._lines(self._file or self._open(), records)
            if self._size > self._bound:
                self._drop_oldest()
        except (OSError, ValueError) as error:  # a full disk, a folder that went away, a closed file
            self._give_up(error)

    def _lines(self, file: TextIO, records: Iterable[Mapping[str, Any]]) -> None:
        text = "".join([json.dumps(record) + "\n" for record in records])
        file.write(text)
        self._size += len(text)

    def flush(self) -> None:
        """What was written so far goes to the system: a kill does not lose it."""
        self._flushed = time.monotonic()
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._write(*({"kind": "metrics", "step": step, **{k: _plain(v) for k, v in values.items()}}
                          for step, values in waiting))
        if self._file is None or self._off or not self._still_ours():
            return
        try:
            self._file.flush()
        except (OSError, ValueError) as error:
            self._give_up(error)

    def _drop_oldest(self) -> None:
        """Writes the file again without its oldest metrics; findings, start and end stay."""
        assert self._file is not None
        assert self._path is not None
        number = self._file.fileno()
        self._file.close()
        os.close(number)
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = list(_newest(lines, int(self._bound * KEPT)))
        part = self._path.with_suffix(".part")
        part.write_text("".join(kept), encoding="utf-8")
        os.replace(part, self._path)
        self._file = _writer(self._path, os.O_APPEND)
        self._identity = _identity(self._file)
        self._size = sum(map(len, kept))

    def _summary(self, ended: str | None) -> None:
        if self._off or self._path is None:
            return
        data = {"traindx": "live-summary", "rank": self.rank, "mode": self._mode, "cwd": _here(), "ended": ended,
                "first_step": self._first_step, "last_step": self._last_step,
                "last": {k: _plain(v) for k, v in list(self._last.items())[:200]},
                "facts": self._facts.splitlines(), "findings": list(self._findings.values())}
        try:
            part = self._path.with_suffix(".summary.part")
            part.write_text(json.dumps(data, indent=1), encoding="utf-8")
            os.replace(part, self._path.with_suffix(".summary.json"))
        except OSError as error:
            self._give_up(error)

    def _still_ours(self) -> bool:
        """Whether the descriptor is still that of our file: a program that closed all of them may have others now."""
        if self._file is None or self._identity is None:
            return True
        try:
            ours = _identity(self._file) == self._identity
        except (OSError, ValueError):
            ours = False
        if not ours:
            _abandon(self._file)
            self._file = None
            self._give_up(OSError("the program closed the file of the records"))
        return ours

    def _give_up(self, error: Exception) -> None:
        self._off = True
        say(f"nothing more is recorded in {self._folder}: {error}; the training goes on")


def _writer(path: Path, flags: int) -> TextIO:
    """A file whose end never closes its descriptor: the number may belong to the program's own file by then."""
    return open(os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o666), "w", encoding="utf-8", closefd=False)


def _identity(file: TextIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def _abandon(file: TextIO) -> None:
    """What waits in the buffer goes nowhere: the descriptor belongs to another file by now, which stays open."""
    number = file.fileno()
    try:
        theirs = os.dup(number)
    except OSError:
        theirs = None  # closed, and not opened again
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        if nowhere != number:
            os.dup2(nowhere, number)
        file.flush()
    finally:
        if theirs is None:
            os.close(number)
        else:
            os.dup2(theirs, number)
            os.close(theirs)
        if nowhere != number:
            os.close(nowhere)


def _here() -> str:
    """The current folder, "" where it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _without_our_frames(told: traceback.TracebackException, depth: int = 20) -> None:
    """The attachment stands between the program and what it calls, and is no place to look at."""
    told.stack = traceback.StackSummary.from_list(
        [f for f in told.stack if not f.filename.startswith(OURS)])
    for before in (told.__cause__, told.__context__):
        if before is not None and depth:
            _without_our_frames(before, depth - 1)


def _bounded(text: str) -> str:
    half = LONGEST_TRACE // 2
    return text if len(text) <= LONGEST_TRACE else f"{text[:half]}\n...\n{text[-half:]}"


def _claim(folder: Path, rank: int) -> tuple[TextIO, Path]:
    """A new file of this rank; another process of the same rank (two programs one after the other) has its own."""
    names = [f"rank{rank:05d}.jsonl", f"rank{rank:05d}.p{os.getpid()}.jsonl"]
    names += [f"rank{rank:05d}.p{os.getpid()}.{n}.jsonl" for n in range(1, 100)]
    for name in names:
        try:
            return _writer(folder / name, os.O_CREAT | os.O_EXCL), folder / name
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
