"""Any log that people read: prints, loggers, progress bars, printed dicts, and several of these in one file."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from traindx_tools.on_logs.artifacts import Source, is_binary
from traindx_tools.on_logs.readers import dialects, notes
from traindx_tools.on_logs.readers.counters import Counters, settle
from traindx_tools.on_logs.readers.line_parser import NOTHING, Plan, plan_line, split
from traindx_tools.on_logs.readers.lines import LineStats, encoding_of, read_lines
from traindx_tools.on_logs.readers.names import TRAIN, identify
from traindx_tools.on_logs.readers.numbers import value, whole
from traindx_tools.on_logs.readers.prefixes import Prefix, parse_prefix
from traindx_tools.on_logs.readers.printed_tables import PrintedTables, Row
from traindx_tools.on_logs.readers.reader import Head, Reader
from traindx_tools.on_logs.readers.recorder import Key, Recorder
from traindx_tools.on_logs.run import Artifact, Note, Run

_MAX_SHAPES = 20_000
_TABLE_SLOT = 9
"""Marks steps that a column of a printed table gave."""
_QUIET_LEVELS = frozenset({"WARNING", "WARN", "ERROR", "CRITICAL", "FATAL"})


@dataclass(frozen=True)
class _Shape:
    """What is known of all lines with the same text around their numbers."""

    plan: Plan
    note: str | None


@dataclass
class _Record:
    line: int
    step: float
    total: float
    slot: int
    epoch: float
    time: float
    values: list[tuple[Key, float]]


@dataclass
class TextReading:
    """The state of reading one text, line by line."""

    source: str
    recorder: Recorder = field(init=False)
    counters: Counters = field(default_factory=Counters)
    notes: list[Note] = field(default_factory=list)
    world_size: int | None = None
    planned: float = math.nan
    tentative: set[Key] = field(default_factory=set)
    firm: set[Key] = field(default_factory=set)
    dialects: dict[str, int] = field(default_factory=dict)
    _shapes: dict[str, _Shape] = field(default_factory=dict)
    _ranked: dict[tuple[Key, int], Key] = field(default_factory=dict)
    _bar: _Record | None = None
    _bar_kind: str = ""
    _in_traceback: bool = False
    _epoch: float = math.nan
    _step: float = math.nan
    _tables: PrintedTables = field(default_factory=PrintedTables)
    _bar_total: float = math.nan
    _ranks: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.source)

    def line(self, number: int, text: str) -> None:
        """Reads one line."""
        prefix = parse_prefix(text)
        body = text[prefix.end:] if prefix.end else text
        if self._skip_traceback(body) or not body:
            return
        parts = split(body)
        in_table, row = self._tables.line(body, len(parts) // 2)
        if row is not None:
            self._take_row(row, number, prefix)
        if in_table:
            return
        shape = self._shape(parts, body, prefix)
        if shape.note:
            self._note(shape.note, number, body, prefix)
        if shape.plan is not NOTHING and (prefix.level not in _QUIET_LEVELS):
            self._apply(shape.plan, parts, number, prefix, indented=body[:1] in (" ", "\t"))

    def _skip_traceback(self, body: str) -> bool:
        if body.startswith("Traceback (most recent call last)"):
            self._in_traceback = True
        elif self._in_traceback and body and not body[0].isspace():
            self._in_traceback = False
            return True
        return self._in_traceback

    def _shape(self, parts: list[str], body: str, prefix: Prefix) -> _Shape:
        shape_key = "\0".join(parts[::2])
        shape = self._shapes.get(shape_key)
        if shape is None:
            kind = notes.kind_of(body)
            plan = plan_line(parts, dialects.group_of(prefix.logger))
            if plan.bar or "%|" in body:
                kind = None
            if kind and notes.hides_metrics(kind, body) or (kind and plan.step is None and plan.epoch is None
                                                           and plan.leftover > 2):
                plan = NOTHING
            if kind is None and plan.header:
                kind = "epoch" if plan.epoch else None
            shape = _Shape(plan, kind)
            if len(self._shapes) < _MAX_SHAPES:
                self._shapes[shape_key] = shape
            dialect = dialects.of_line(body)
            if dialect:
                self.dialects[dialect] = self.dialects.get(dialect, 0) + 1
        return shape

    def _note(self, kind: str, number: int, body: str, prefix: Prefix) -> None:
        if len(self.notes) < notes.MAX_NOTES:
            self.notes.append(Note(kind, body.strip()[:notes.MAX_TEXT], self.source, number, notes.values_of(body),
                                   prefix.rank))
        self.world_size = self.world_size or notes.world_size(body)
        planned = notes.planned_steps(body)
        self.planned = self.planned if planned is None else planned

    def _apply(self, plan: Plan, parts: list[str], number: int, prefix: Prefix, indented: bool) -> None:
        tokens = parts[1::2]
        step, total, slot = self._counter(plan, tokens)
        epoch = math.nan
        if plan.epoch:
            read = value(tokens[plan.epoch.token])
            epoch = math.nan if read is None else read
            if plan.epoch.total is not None:
                self.counters.epoch_total = whole(tokens[plan.epoch.total]) or self.counters.epoch_total
        if plan.header:
            self._flush()
            self._epoch = epoch if plan.epoch else self._epoch
            self._step = step
            return
        if not plan.fields:
            if plan.bar == "tqdm" and plan.plain and plan.step and plan.step.total is not None:
                self._bar_total = max(whole(tokens[plan.step.total]) or 0.0, self._bar_total)
            return
        if math.isnan(epoch):
            epoch = self._epoch
        else:
            self._epoch = self._epoch if math.isnan(self._epoch) else epoch
        if slot < 0 and (indented or not math.isnan(self._step)):
            step = self._step
        elif slot >= 0 and not indented:
            self._step = math.nan
        rank = prefix.rank
        if plan.rank is not None:
            read = whole(tokens[plan.rank])
            rank = rank if read is None else int(read)
        values = self._values(plan, tokens, rank)
        if values:
            time = math.nan if prefix.time is None else prefix.time
            self._take(_Record(number, step, total, slot, epoch, time, values), plan.bar)

    def _counter(self, plan: Plan, tokens: list[str]) -> tuple[float, float, int]:
        if plan.step is None:
            return math.nan, math.nan, -1
        step = whole(tokens[plan.step.token])
        total = None if plan.step.total is None else whole(tokens[plan.step.total])
        return (math.nan, math.nan, -1) if step is None else (step, math.nan if total is None else total,
                                                              plan.step.sureness)

    def _values(self, plan: Plan, tokens: list[str], rank: int | None) -> list[tuple[Key, float]]:
        values: list[tuple[Key, float]] = []
        for f in plan.fields:
            number = value(tokens[f.token])
            if number is None:
                continue
            if f.over is not None:
                whole_count = value(tokens[f.over])
                number = number / whole_count if whole_count else math.nan
            key = f.key if rank is None else self._of_rank(f.key, rank)
            (self.tentative if f.tentative else self.firm).add(key)
            values.append((key, number * f.factor))
        return values

    def _of_rank(self, key: Key, rank: int) -> Key:
        self._ranks.add(rank)
        ranked = self._ranked.get((key, rank))
        if ranked is None:
            ranked = self._ranked[key, rank] = Key(key.original, key.group, rank, key.metric)
        return ranked

    def _take_row(self, row: Row, number: int, prefix: Prefix) -> None:
        if not math.isnan(row.epoch_total):
            self.counters.epoch_total = row.epoch_total
        keys = [(Key(name, identify(name).group or TRAIN, prefix.rank), v) for name, v in row.values]
        self.firm.update(key for key, _ in keys)
        time = math.nan if prefix.time is None else prefix.time
        epoch = self._epoch if math.isnan(row.epoch) else row.epoch
        slot = -1 if math.isnan(row.step) else _TABLE_SLOT
        self._take(_Record(number, row.step, row.total, slot, epoch, time, keys), "")

    def _take(self, record: _Record, bar: str) -> None:
        """Adds a record; of the drawings of a bar only the last at each count, of a Keras bar the last of an epoch."""
        if self._bar is not None and not self._redraws(record, bar):
            self._flush()
        if bar:
            self._bar, self._bar_kind = record, bar
        else:
            self._add(record)

    def _redraws(self, record: _Record, bar: str) -> bool:
        held = self._bar
        if held is None or bar != self._bar_kind:
            return False
        same_count = record.step == held.step or (math.isnan(record.step) and math.isnan(held.step))
        if bar == "keras":
            return record.step >= held.step and record.total == held.total and held.step < held.total or same_count
        return same_count and record.total == held.total and {k for k, _ in held.values} <= {k for k, _ in record.values}

    def _flush(self) -> None:
        if self._bar is not None:
            self._add(self._bar)
            self._bar = None

    def _add(self, r: _Record) -> None:
        if self.recorder.full:
            return
        for values in _once_each(r.values):
            self.recorder.add(r.line, values, step=r.step, epoch=r.epoch, time=r.time)
            self.counters.slot.append(r.slot)
            self.counters.total.append(r.total)

    def finish(self, note: str) -> Run:
        """The run that the lines tell of."""
        row = self._tables.finish()
        if row is not None:
            self._take_row(row, max(self.recorder.line, default=1), Prefix())
        self._flush()
        self._forget_remarks()
        step, remark = settle(np.array(self.recorder.step), np.array(self.recorder.epoch), self.counters)
        self.recorder.step = _array(step)
        planned, unit = self._planned(step)
        size = self.world_size or (max(self._ranks) + 1 if len(self._ranks) > 1 else None)
        remarks = [r for r in (remark, note, _cut_note(self.recorder)) if r]
        form = max(self.dialects, key=lambda d: self.dialects[d]) if self.dialects else "free_text"
        return Run(series=self.recorder.series(), notes=tuple(self.notes), planned_steps=planned, planned_unit=unit,
                   world_size=size,
                   artifacts=(Artifact(self.source, form, rows=self.recorder.rows, note="; ".join(remarks)),))

    def _forget_remarks(self) -> None:
        """Drops names that came once without a counter, or that are unknown and came once among many records."""
        counts = self.recorder.counts()
        many = len(self.recorder) >= 4
        for key, count in counts.items():
            lonely = not key.name.known and key.metric is None and count == 1 and many
            if (key in self.tentative and key not in self.firm and count < 3) or lonely:
                self.recorder.forget([key])

    def _planned(self, step: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[float | None, str]:
        if not math.isnan(self.planned):
            return self.planned, "step"
        slots, totals = np.array(self.counters.slot), np.array(self.counters.total)
        placed = np.isfinite(step) if len(step) else np.zeros(0, bool)
        if placed.any():
            main = np.bincount(slots[placed & (slots >= 0)]).argmax() if (placed & (slots >= 0)).any() else -1
            known = totals[placed & (slots == main) & np.isfinite(totals)] if main >= 0 else totals[:0]
            if len(known):
                total = float(known[-1])
                if (step[placed] <= total).all():
                    return total, "step"
                if not math.isnan(self.counters.epoch_total):
                    return total * self.counters.epoch_total, "step"
        if not math.isnan(self.counters.epoch_total):
            return self.counters.epoch_total, "epoch"
        if "hf_trainer_log" in self.dialects and self._bar_total > 0:
            return self._bar_total, "step"
        return None, "step"


def _array(step: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> array[float]:
    return array("d", step.tobytes())


def _once_each(values: list[tuple[Key, float]]) -> list[list[tuple[Key, float]]]:
    """Splits a record in which a metric stands twice ("reward before 0.51 after 0.62"): one value after the other."""
    if len({key for key, _ in values}) == len(values):
        return [values]
    first: dict[Key, float] = {}
    again: list[tuple[Key, float]] = []
    for key, number in values:
        if key in first:
            again.append((key, number))
        else:
            first[key] = number
    return [list(first.items()), *_once_each(again)]


def _cut_note(recorder: Recorder) -> str:
    if recorder.full:
        return f"only its first {recorder.kept:,} values were kept"
    return f"{recorder.dropped_names} values of too many different names were left out" if recorder.dropped_names else ""


def lines_of(source: Source, stats: LineStats | None = None) -> Iterator[tuple[int, str]]:
    """The lines of a source. Raises OSError."""
    with source.open() as stream:
        yield from read_lines(stream, encoding_of(source.head), stats)


def read(source: Source) -> Run:
    """Reads any text log. Raises OSError."""
    stats, reading = LineStats(), TextReading(source.name)
    for number, text in lines_of(source, stats):
        reading.line(number, text)
    return reading.finish(f"{stats.cut} lines longer than 64 KiB were cut" if stats.cut else "")


def sniff(head: Head) -> float:
    """Whatever is text may be a log; the sniffers of other formats are surer where it is theirs."""
    return 0.0 if is_binary(head.data) else 0.1


READER = Reader("free_text", sniff, read)
