"""Reads a run while it goes on: the instruments' records as they grow, and its log when a curve of it is wanted.

What is asked for is a `Trace` each time; nothing is read twice but the log, which is read anew when it has grown.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import TraindxError
from traindx_tools.experiments.trace import LIVE, PARTS, RESIDENT, Applied, Curve, Trace
from traindx_tools.finding import Finding
from traindx_tools.live.reading import read_folder
from traindx_tools.on_logs.run import Run

LOG_SHARE = 0.1
"""Of the time, what reading the log of a running program may take."""
STARTING = 4.0
"""Times as long a program may be quiet before its first output: it imports frameworks and reads data."""
TAIL_BYTES = 256 * 2**10
_REPORTERS = ("ChildFailedError", "CalledProcessError", "KeyboardInterrupt", "SystemExit")
"""Errors that only say that something else failed, or that it was stopped."""

AppliedIn = Callable[[Path], Mapping[str, Applied]]


@dataclass
class _File:
    """One record that grows."""

    read: int = 0
    rest: bytes = b""


@dataclass
class Watch:
    """One run: `live` holds the instruments' records, `output` what it prints; files are told as seen from `root`."""

    live: Path
    output: Path
    root: Path
    applied_in: AppliedIn = lambda _: {}
    memory: Path | None = None
    """Lines of seconds and bytes."""
    clock: Callable[[], float] = time.monotonic
    _files: dict[str, _File] = field(default_factory=dict)
    _values: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    _log: dict[str, Curve] = field(default_factory=dict)
    _log_size: int = -1
    _log_due: float = 0.0
    _findings: tuple[Finding, ...] = ()
    _stale: bool = False
    _changed: float = 0.0
    _quiet: float = 0.0
    _held: list[tuple[float, float]] = field(default_factory=list)
    _reached: list[tuple[float, float]] = field(default_factory=list)
    _sizes: tuple[int, int] = (0, 0)
    _originals: tuple[str, ...] = ()
    _parts: dict[str, str] = field(default_factory=dict)

    def look(self, seconds: float, *, log: bool = False) -> Trace:
        """The run so far. `log`: its printed curves are wanted as well."""
        self._read_records()
        if self._stale:
            self._stale, self._findings = False, read_folder(self.live).seen_from(self.root)
        if log and self.clock() >= self._log_due:
            self._read_log([self.output])
        self._note_progress()
        self._note_step(seconds)
        return Trace(self.output.parent, self._curves(), seconds=seconds, changes=self._applied(),
                     findings=self._findings, quiet=self._quiet, originals=self._originals, parts=self._parts)

    def _note_progress(self) -> None:
        """How long nothing was printed or recorded; a start may be quiet for longer."""
        records = sum(f.read for name, f in self._files.items() if self.memory is None or name != self.memory.name)
        sizes = (_size(self.output), records)
        if sizes != self._sizes or not self._changed:
            self._sizes, self._changed = sizes, self.clock()
        self._quiet = (self.clock() - self._changed) / (1.0 if any(sizes) else STARTING)

    def end(self, seconds: float, exit_code: int | None, stopped: str, written: Sequence[Path] = (),
            peak_bytes: int | None = None) -> Trace:
        """The run as it ended: everything is read once more. `written`: files that it made besides."""
        self._read_records()
        self._log_size = -1
        self._read_log([self.output, *written])
        self._note_step(seconds)
        return Trace(self.output.parent, self._curves(), ended=not stopped, exit_code=exit_code, stopped=stopped,
                     error="" if stopped else last_error(self.output), seconds=seconds, peak_bytes=peak_bytes,
                     changes=self._applied(), findings=read_folder(self.live).seen_from(self.root),
                     quiet=self._quiet if stopped else 0.0, originals=self._originals, parts=self._parts)

    def _applied(self) -> dict[str, Applied]:
        """What changes did, with files as seen from the root."""
        home = f"{self.root}/"
        return {n: replace(a, where=a.where.replace(home, ""), problem=a.problem.replace(home, ""))
                for n, a in self.applied_in(self.live).items()}

    def _curves(self) -> dict[str, Curve]:
        live = {name: Curve(*(np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)))
                for name, rows in self._values.items()}
        resident = self._resident()
        return {**self._log, **live, **({RESIDENT: resident} if resident is not None else {})}

    def _read_records(self) -> None:
        paths = sorted(self.live.glob("rank00000*.jsonl")) if self.live.is_dir() else []
        for path in paths:
            for record in self._new_lines(path):
                if record.get("kind") == "metrics":
                    self._metrics(record)
                elif record.get("kind") in ("finding", "withdrawn"):
                    self._stale = True
                elif record.get("kind") == PARTS and isinstance(record.get("parts"), dict):
                    self._parts = {**self._parts, **{str(k): str(v) for k, v in record["parts"].items()}}
                elif record.get("kind") == "originals" and isinstance(record.get("files"), list):
                    self._originals = tuple(str(f) for f in record["files"][:5])
        if self.memory is not None:
            self._read_memory(self.memory)

    def _new_lines(self, path: Path) -> list[dict[str, Any]]:
        file = self._files.setdefault(path.name, _File())
        if _size(path) < file.read:  # written anew without its oldest records: what is known is not taken twice
            file.read, file.rest = 0, b""
        try:
            with path.open("rb") as handle:
                handle.seek(file.read)
                block = handle.read()
        except OSError:
            return []
        file.read += len(block)
        *lines, file.rest = (file.rest + block).split(b"\n")
        return [r for r in map(_parsed, lines) if isinstance(r, dict)]

    def _metrics(self, record: Mapping[str, Any]) -> None:
        step = _number(record.get("step"))
        for name, value in record.items():
            if name not in ("kind", "step"):
                rows = self._values.setdefault(LIVE + name, [])
                if not rows or not step <= rows[-1][0]:
                    rows.append((step, _number(value)))

    def _read_memory(self, path: Path) -> None:
        """What was held, by the clock."""
        file = self._files.setdefault(path.name, _File())
        try:
            with path.open("rb") as handle:
                handle.seek(file.read)
                block = handle.read()
        except OSError:
            return
        file.read += len(block)
        *lines, file.rest = (file.rest + block).split(b"\n")
        pairs = [line.split(b" ") for line in lines]
        self._held += [(float(p[0]), float(p[1])) for p in pairs if len(p) == 2]

    def _note_step(self, seconds: float) -> None:
        """When which step was reached: memory is looked at by the clock, and wanted by the step."""
        known = [rows[-1][0] for rows in self._values.values() if rows]
        known = known or [float(np.nanmax(c.steps)) for c in self._log.values() if np.isfinite(c.steps).any()]
        step = max(known, default=0.0)
        begun = bool(known or _size(self.output))
        if begun and (not self._reached or step > self._reached[-1][1]):
            self._reached.append((seconds, step))

    def _resident(self) -> Curve | None:
        """The memory of all processes against the step; None until two steps are known."""
        if not self._held or len(self._reached) < 2:
            return None
        (times, steps), (seconds, held) = zip(*self._reached, strict=True), zip(*self._held, strict=True)
        inside = (np.array(seconds) >= times[0]) & (np.array(seconds) <= times[-1])
        return Curve(np.interp(np.array(seconds)[inside], times, steps), np.array(held)[inside])

    def _read_log(self, paths: Sequence[Path]) -> None:
        size = _size(self.output)
        if size == self._log_size:
            return
        self._log_size = size
        start = self.clock()
        self._log = log_curves([p for p in paths if p.is_file()])
        self._log_due = self.clock() + (self.clock() - start) / LOG_SHARE


def log_curves(paths: Sequence[Path]) -> dict[str, Curve]:
    """The metrics of a run's log and metric files by their names ("loss", "validation accuracy")."""
    from traindx_tools.on_logs.each_run import read_last_run

    try:
        run = read_last_run([str(p) for p in paths])
    except (TraindxError, OSError):
        return {}
    return curves_of(run)


def curves_of(run: Run) -> dict[str, Curve]:
    """The series of a run by their names; of several of one name the longest."""
    found: dict[str, Curve] = {}
    for series in sorted(run.series, key=len):
        if len(series):
            steps = np.full(len(series), np.nan) if series.unit == "line" else series.position
            found[str(series)] = Curve(steps, series.values)
    return found


def last_error(output: Path) -> str:
    """Type and first line of the last exception in an output, "" without one."""
    from traindx_tools.on_logs.tracebacks import read_errors

    try:
        with output.open("rb") as file:
            file.seek(max(0, _size(output) - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    found = [e for e in read_errors(enumerate(text.splitlines(), 1), output.name)
             if e.kind in ("exception", "fatal") and e.type.rpartition(".")[2] not in _REPORTERS]
    last = max(found, key=lambda e: e.last_line or e.end_line, default=None)
    return "" if last is None else f"{last.type}: {last.message.strip().split(chr(10))[0]}"[:300]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
