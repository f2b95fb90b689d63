"""Run files of Weights & Biases (`run-ID.wandb`), read without wandb, also while the run still writes.

History becomes series: a metric's step is the one that `define_metric` gave it, else the surest counter that was logged
with it, else wandb's own `_step`. What the machine did becomes series named "system/..."; the console is read for
errors where no output.log lies beside the file.
"""

from __future__ import annotations

import fnmatch
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.configs.flat import flat
from traindx_tools.on_logs.readers import columns, wandb_records
from traindx_tools.on_logs.readers.reader import Head, Reader
from traindx_tools.on_logs.readers.recorder import Key
from traindx_tools.on_logs.readers.tfrecord import RecordStats
from traindx_tools.on_logs.readers.wandb_framing import FILE_HEADER, records
from traindx_tools.on_logs.run import Run, merge
from traindx_tools.on_logs.tracebacks.parse import read_errors

FORMAT = "wandb"
MAX_CONSOLE = 16 * 2**20
"""Characters of console output that are kept."""
MAX_DEFINED = 2_000
"""Definitions of metrics that are kept."""
NO_NUMBER = "values that are no number (text, histograms, media)"
_TYPE = "._type"
"""What a histogram, a table or a picture holds beside its parts, some of which are numbers."""
_OWN = ("_timestamp", "_runtime", "_step", "_wandb")


def sniff(head: Head) -> float:
    """Certain where the header of the file is there."""
    return 1.0 if head.data.startswith(FILE_HEADER) else 0.0


def read(source: Source) -> Run:
    """Everything that a run file tells. Raises OSError."""
    reading, stats = _Reading(source.name), RecordStats()
    with source.open() as stream:
        for number, record in enumerate(records(stream, stats), 1):
            try:
                reading.take(number, *wandb_records.kind_of(record))
            except ValueError:
                stats.damaged += 1
    beside = source.local is not None and (source.local.parent / "files" / "output.log").is_file()
    console = "" if beside else "".join(reading.console)
    errors = read_errors(enumerate(console.splitlines(), 1), source.name)
    rows = reading.rows.recorder.rows
    return merge([reading.rows.run(), Run(errors=errors, config=reading.config, artifacts=(
        Artifact(source.name, FORMAT, rows=rows, note=reading.note(stats, beside)),))])


@dataclass
class _Reading:
    """Record by record."""

    source: str
    rows: columns.RowReading = field(init=False)
    config: dict[str, Any] = field(default_factory=dict)
    console: list[str] = field(default_factory=list)
    unused: Counter[str] = field(default_factory=Counter)
    finished: bool = False
    _length: int = 0
    _defined: list[tuple[str, str]] = field(default_factory=list)
    """Pattern of a metric's name and the metric that counts its steps."""
    _counters: dict[str, Any] = field(default_factory=dict)
    """The last value of each metric that counts steps."""
    _step_of: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = columns.RowReading(self.source)

    def take(self, number: int, kind: int, message: bytes) -> None:
        """Reads one record. Raises ValueError on one that is damaged."""
        if kind == wandb_records.HISTORY:
            self._history(number, dict(wandb_records.items(message)))
        elif kind == wandb_records.STATS:
            self._stats(number, message)
        elif kind in (wandb_records.CONFIG, wandb_records.RUN):
            self._configuration(kind, message)
        elif kind == wandb_records.METRIC:
            self._define(message)
        elif kind in (wandb_records.OUTPUT, wandb_records.OUTPUT_RAW):
            self._print(wandb_records.text(wandb_records.strings(message).get(3, b"")))
        elif kind == wandb_records.EXIT:
            self.finished = True
        elif kind == wandb_records.SUMMARY:
            pass  # the last value of each metric: the history holds it
        elif kind:
            self.unused["records of other kinds"] += 1

    def _history(self, number: int, logged: dict[str, Any]) -> None:
        self._counters.update({c: logged[c] for _, c in self._defined if c in logged})
        media = tuple(k[:-len(_TYPE)] for k in logged if k.endswith(_TYPE))
        self.unused[NO_NUMBER] += len(media)
        parts = tuple(f"{m}." for m in media)
        values = {k: v for k, v in logged.items()
                  if k not in _OWN and not k.startswith(parts) and self._is_number(v)}
        by_counter: dict[str, list[str]] = {}
        for name in sorted(values):
            by_counter.setdefault(self._counter_of(name), []).append(name)
        for counter, names in by_counter.items():
            self._row(number, names, values, logged, counter)

    def _is_number(self, value: Any) -> bool:
        usable = columns.number(value) is not None
        if not usable and value is not None:
            self.unused[NO_NUMBER] += 1
        return usable

    def _row(self, number: int, names: list[str], values: dict[str, Any], logged: dict[str, Any], counter: str) -> None:
        """One row; under a counter of its own the others do not stand for the step."""
        measured = [n for n in names if not counter or (n != counter and columns.role(n) != columns.STEP)]
        place = {"_timestamp": logged.get("_timestamp"), "_step": logged.get("_step")}
        if counter:
            kept = columns.EPOCH if columns.role(counter) == columns.EPOCH else columns.STEP
            place[kept] = self._counters[counter]
            if kept == columns.STEP:
                del place["_step"]
        if measured:
            head = (*place, *measured)
            self.rows.row(number, head, (*place.values(), *(values[n] for n in measured)))

    def _counter_of(self, name: str) -> str:
        """The metric that counts this one's steps, "" where none was defined or none was logged yet."""
        if name not in self._step_of:
            exact = [c for p, c in self._defined if p == name]
            found = exact or [c for p, c in self._defined if "*" in p and fnmatch.fnmatchcase(name, p)]
            self._step_of[name] = found[-1] if found else ""
        counter = self._step_of[name]
        return counter if columns.number(self._counters.get(counter)) is not None else ""

    def _define(self, message: bytes) -> None:
        told = wandb_records.strings(message)
        name, counter = told.get(1) or told.get(2, b""), told.get(4, b"")
        if name and counter and counter not in (b"_step", name) and len(self._defined) < MAX_DEFINED:
            self._defined.append((wandb_records.text(name)[:200], wandb_records.text(counter)[:200]))
            self._step_of.clear()

    def _stats(self, number: int, message: bytes) -> None:
        stamp = wandb_records.strings(message).get(2)
        time = wandb_records.seconds(stamp) if stamp is not None else math.nan
        values = [(Key(f"system/{name}", "train", None, f"system/{name}"), read)
                  for name, value in wandb_records.items(message, 3) if (read := columns.number(value)) is not None]
        self.rows.recorder.add(number, values, time=time)

    def _configuration(self, kind: int, message: bytes) -> None:
        told = [message] if kind == wandb_records.CONFIG else [
            value for number, value in wandb_records.strings(message).items() if number == 4]
        for part in told:
            nested = {k: v for k, v in wandb_records.items(part) if k and k != "_wandb" and not k.startswith("_wandb.")}
            self.config.update(flat(nested))

    def _print(self, text: str) -> None:
        if self._length < MAX_CONSOLE:
            self._length += len(text)
            self.console.append(text)

    def note(self, stats: RecordStats, beside: bool) -> str:
        """What was not used, damaged or missing."""
        return "; ".join([*_damage(stats, self.finished),
                          *(f"{n} {what}: not used" for what, n in self.unused.items() if n),
                          *(["its console output is read from output.log"] if beside and self.console else []),
                          *(["it holds no metrics"] if not len(self.rows.recorder) else [])])


def _damage(stats: RecordStats, finished: bool) -> Iterator[str]:
    if stats.damaged:
        yield f"{stats.damaged} damaged records skipped"
    if stats.passed_over:
        yield f"{stats.passed_over} large records passed over"
    if stats.truncated:
        yield "it ends in the middle of a record: cut, or still being written"
    elif not finished:
        yield "the run has not ended, or ended without a word"


READER = Reader(FORMAT, sniff, read)
