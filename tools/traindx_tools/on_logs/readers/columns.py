"""Tables of named columns: which column is the step, which the epoch, the time, the group; the rest are metrics.

Wide form: a column a metric. Long form: a column holds the metric's name, another its value.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs import role_names
from traindx_tools.on_logs.readers import prefixes
from traindx_tools.on_logs.readers.counters import EPOCH_WORDS, STEP_WORDS, Counters, settle
from traindx_tools.on_logs.readers.envelopes import remark, told_by_logger
from traindx_tools.on_logs.readers.growing import unknown
from traindx_tools.on_logs.readers.halving import Records
from traindx_tools.on_logs.readers.names import GROUPS, TRAIN, identify, words
from traindx_tools.on_logs.readers.notes import MAX_NOTES, group_of_event, of_event
from traindx_tools.on_logs.readers.numbers import count, value
from traindx_tools.on_logs.readers.one_counter import without_twins
from traindx_tools.on_logs.readers.recorder import ROOM, Columns, Key, Recorder
from traindx_tools.on_logs.readers.written_cells import WrittenCells
from traindx_tools.on_logs.run import Floats, Ints, Note, Run

STEP, EPOCH, TIME, GROUP, RANK, NAME, VALUE, METRIC, SKIP, TOTAL = (
    "step", "epoch", "time", "group", "rank", "name", "value", "metric", "skip", "total")
_TIMES = frozenset({"timestamp", "_timestamp", "wall_time", "walltime", "wall time", "datetime", "date", "created_at",
                    "unix_time", "time_stamp", "asctime", "@timestamp", "ts", "_runtime",
                    "relative time (process)", "relative time (wall)", "wall_time_s"})
_GROUPS = frozenset({"split", "phase", "mode", "stage", "subset", "set", "partition", "group"})
_RANKS = frozenset({"rank", "global_rank", "local_rank", "process_index"})
_NAMES = frozenset({"metric", "name", "tag", "key", "metric_name", "variable", "series"})
_VALUES = frozenset({"value", "val", "metric_value", "scalar"})
_TOTALS = frozenset({"total_steps", "max_steps", "total_iters", "max_iters", "total_iterations"})
_SKIPPED = frozenset({"", "index", "unnamed: 0", "percentage", "remaining_time", "run", "run_id", "seed", "id",
                      "epochs", "pid", "iterations", "time/iterations", "eta_seconds", "host", "hostname",
                      "experiment", "port", "ppid", "lineno", "process_id", "thread_id"})

_MAX_LAYOUTS = 2_000
BIGGEST = 1e300
"""Numbers of a record beyond are no place in a run."""
Mask = NDArray[np.bool_]


@lru_cache(maxsize=4096)
def role(column: str) -> str:
    """What a column holds, by its name alone."""
    plain = column.strip().lower().lstrip("\ufeff")
    snake = "_".join(words(column))
    last = plain.rsplit("/", 1)[-1].rsplit(".", 1)[-1]
    if plain in STEP_WORDS or snake in STEP_WORDS or last in STEP_WORDS:
        return STEP
    if snake in EPOCH_WORDS or last == "epoch":
        return EPOCH
    for names, kind in ((_TIMES, TIME), (_GROUPS, GROUP), (_RANKS, RANK), (_TOTALS, TOTAL), (_SKIPPED, SKIP)):
        if plain in names:
            return kind
    return METRIC


def looks_like_metrics(columns: Iterable[str]) -> bool:
    """Whether columns are those of a log of metrics rather than of a data set."""
    names = [str(c) for c in columns]
    roles = [role(c) for c in names]
    known = sum(identify(c).known and identify(c).measured for c, r in zip(names, roles, strict=False) if r is METRIC)
    placed = METRIC in roles and (STEP in roles or EPOCH in roles)
    return bool(known) or placed or is_long(names) or role_names.reads_as_log(names)


def is_long(columns: Iterable[str]) -> bool:
    """Whether one column names the metric and another gives its value."""
    plain = {c.strip().lower() for c in columns}
    return bool(plain & _NAMES) and bool(plain & _VALUES)


def sureness(column: str) -> int:
    """How surely a step column counts optimizer steps."""
    plain, snake = column.strip().lower(), "_".join(words(column))
    last = plain.rsplit("/", 1)[-1].rsplit(".", 1)[-1]
    return max(STEP_WORDS.get(plain, 0), STEP_WORDS.get(snake, 0), STEP_WORDS.get(last, 0))


def number(cell: Any) -> float | None:
    """The number in a cell, None for an empty one and for text. Booleans are no metrics."""
    if type(cell) is float:
        return cell
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, int):
        return _as_float(cell)
    if not isinstance(cell, str):
        return None
    text = cell.strip()
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return value(text.rstrip("%").rstrip()) if text else None


def _counted(cell: Any) -> float | None:
    """The number in the cell of a counter, which may be written in thousands: "12k"."""
    told = number(cell)
    return count(cell.strip()) if told is None and isinstance(cell, str) else told


def _as_float(cell: float) -> float:
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def moment(cell: Any) -> float:
    """Seconds of a time cell: a number of seconds (or milliseconds since 1970) or a date and time; else NaN."""
    read = number(cell)
    if read is not None:
        return read / 1000.0 if read > 1e11 else read
    if isinstance(cell, str):
        found = prefixes.stamp(cell.strip().replace("T", " "))
        return math.nan if found is None else found
    return math.nan


@dataclass
class _Layout:
    """Where the cells of rows with the same columns are, worked out once."""

    names: tuple[str, ...]
    steps: list[int]
    """Columns that count steps, the surest first."""
    epoch: int
    time: int
    group: int
    rank: int
    total: int
    metrics: list[int]
    long: tuple[int, int] | None
    """The columns of the metric's name and value, where the table has the long form."""
    columns: dict[tuple[str, int | None], list[Columns | None]] = field(default_factory=dict)


def starting_over(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> frozenset[str]:
    """The columns that count and fall again, as batches of an epoch do, where another of them rises all along.

    And those that some rows have not, where another one, as surely a step, stands in all of their rows and in more.
    """
    at = [i for i, n in enumerate(names) if role(n) == STEP]
    if len(at) < 2:
        return frozenset()
    every = list(rows)
    cells = [[_counted(r[i]) for r in every] for i in at]
    told = [[s for s in c if s is not None] for c in cells]
    falls = [any(b < a for a, b in pairwise(t)) for t in told]
    rises = any(not fell and len(set(t)) > 1 for t, fell in zip(told, falls, strict=True))
    over = {names[i] for i, fell in zip(at, falls, strict=True) if fell and rises}
    where = [{row for row, s in enumerate(c) if s is not None} for c in cells]
    seldom = {names[i] for i, mine in zip(at, where, strict=True) if any(
        mine < other and sureness(names[j]) >= sureness(names[i]) and names[j] not in over
        for j, other in zip(at, where, strict=True))}
    return frozenset(over | seldom)


def _layout(names: tuple[str, ...], within: frozenset[str] = frozenset()) -> _Layout:
    roles = [role(n) for n in names]
    plain = [n.strip().lower() for n in names]
    steps = sorted((i for i, r in enumerate(roles) if r == STEP),
                   key=lambda i: (names[i] in within, -sureness(names[i])))
    metrics = [i for i, r in enumerate(roles) if r == METRIC]
    long = None
    if is_long(names):
        long = next(i for i, n in enumerate(plain) if n in _NAMES), next(i for i, n in enumerate(plain) if n in _VALUES)
    first = {kind: roles.index(kind) if kind in roles else -1 for kind in (EPOCH, TIME, GROUP, RANK, TOTAL)}
    return _Layout(names, steps, first[EPOCH], first[TIME], first[GROUP], first[RANK], first[TOTAL],
                   [] if long else metrics, long)


@dataclass
class RowReading:
    """Rows of a table or of JSON objects, one after the other."""

    source: str
    recorder: Recorder = field(init=False)
    planned: float | None = None
    tells_events: bool = False
    """Whether its texts say what happened (JSON); those of a table are columns."""
    within: frozenset[str] = frozenset()
    """Columns that count and start over where others count on (`starting_over`)."""
    twins: str = ""
    """What is to be said of columns that tell the values of another one."""
    of_logger: str = ""
    """What is to be said of numbers that are its logger's own."""
    of_steps: str = ""
    """What is to be said of a counter that starts over with each epoch."""
    notes: list[Note] = field(default_factory=list)
    _noted: Counter[str] = field(default_factory=Counter)
    written: WrittenCells | None = None
    """Reads cells that are numbers with words."""
    _layouts: dict[tuple[str, ...], _Layout] = field(default_factory=dict)
    _last: _Layout | None = None

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.source)

    def row(self, line: int, names: Sequence[str], cells: Sequence[Any]) -> None:
        """Reads one row; empty cells are None or blank."""
        layout = self._layout_of(names)
        step = next((s for i in layout.steps if (s := _counted(cells[i])) is not None and s.is_integer()), math.nan)
        epoch = math.nan if layout.epoch < 0 else _or_nan(number(cells[layout.epoch]))
        time = math.nan if layout.time < 0 else moment(cells[layout.time])
        group = "" if layout.group < 0 else GROUPS.get(str(cells[layout.group]).strip().lower(), "")
        if self.tells_events and not group:
            group = group_of_event(dict(zip(names, cells, strict=False)))
        rank = None if layout.rank < 0 else _whole(number(cells[layout.rank]))
        if layout.total >= 0:
            self.planned = number(cells[layout.total]) or self.planned
        if layout.long:
            self._long(line, layout.long, cells, (step, epoch, time), group, rank)
            return
        columns = layout.columns.get((group, rank)) or self._columns(layout, group, rank)
        values = [number(cells[i]) for i in layout.metrics]
        if self.written is not None and None in values:
            values = self.written.read(line, [names[i] for i in layout.metrics], [cells[i] for i in layout.metrics],
                                       values)
        self._note(line, names, cells, measured=any(v is not None for v in values), rank=rank)
        kept = [c for c, v in zip(columns, values, strict=True) if v is not None]
        if kept:
            self.recorder.append(line, kept, [v for v in values if v is not None], step, epoch, time)

    def _note(self, line: int, names: Sequence[str], cells: Sequence[Any], *, measured: bool, rank: int | None) -> None:
        """What a row says of the run in words: {"event": "resume", "checkpoint": ...}."""
        if not self.tells_events or not any(isinstance(c, str) for c in cells):
            return
        record = dict(zip(names, cells, strict=False))
        said = of_event(record, measured=measured)
        if said is not None and self._noted[said[0]] < MAX_NOTES:
            self._noted[said[0]] += 1
            values = {n: float(v) for n, v in record.items() if type(v) in (int, float) and abs(v) < BIGGEST}
            self.notes.append(Note(said[0], said[1], self.source, line, values, rank))

    def takes(self, names: Sequence[str]) -> list[int] | None:
        """The columns whose numbers `rows` needs; None where rows with these names have to be read one by one."""
        layout = self._layout_of(names)
        if layout.long or layout.group >= 0 or layout.rank >= 0:
            return None
        return sorted({*layout.steps, *(i for i in (layout.epoch, layout.time, layout.total) if i >= 0),
                       *layout.metrics})

    def rows(self, lines: Ints | range, names: Sequence[str], cells: Mapping[int, tuple[Floats, Mask]]) -> None:
        """`row` for many rows of the same columns. `cells`: numbers of the columns of `takes`, and where there is one.

        Cells without a number are absent, as an empty one is. Rows for which the recorder has no room are left out.
        """
        layout = self._layout_of(names)
        step = nothing = unknown(len(lines))
        for i in reversed(layout.steps):
            number, there = cells[i]
            step = _or_else(number, there & np.isfinite(number) & (number == np.floor(number)), step)
        epoch = nothing if layout.epoch < 0 else _or_else(*cells[layout.epoch], nothing)
        time = nothing if layout.time < 0 else _in_seconds(_or_else(*cells[layout.time], nothing))
        if layout.total >= 0:
            number, there = cells[layout.total]
            told = np.flatnonzero(there & (number != 0))
            self.planned = float(number[told[-1]]) if len(told) else self.planned
        columns = layout.columns.get(("", None)) or self._columns(layout, "", None)
        measured = _any_of([cells[i][1] for i in layout.metrics], len(lines))
        for kept in self._in_parts(np.flatnonzero(measured), len(layout.metrics)):
            part: Ints | slice = slice(None) if len(kept) == len(lines) else kept
            of_lines = lines if isinstance(part, slice) else np.asarray(lines)[part]
            values = [(c, *_present(cells[i][0][part], cells[i][1][part])) for c, i in zip(
                columns, layout.metrics, strict=True)]
            self.recorder.append_all(of_lines, step[part], epoch[part], time[part], values)

    def _in_parts(self, rows: Ints, width: int) -> Iterator[Ints]:
        """The rows, as many at once as there is room for; without those for which there is none."""
        size = max(1, int((1 - ROOM) * self.recorder.most) // max(1, width))
        for start in range(0, len(rows), size):
            part = rows[start: start + size]
            if self.recorder.has_room(len(part) * width):
                yield part
            else:
                yield from (part[i: i + 1] for i in range(len(part)) if self.recorder.has_room(width))

    def _layout_of(self, names: Sequence[str]) -> _Layout:
        if self._last is not None and self._last.names == names:
            return self._last
        key = tuple(names)
        if key not in self._layouts:
            if len(self._layouts) > _MAX_LAYOUTS:
                self._layouts.clear()
            self._layouts[key] = _layout(key, self.within)
        self._last = self._layouts[key]
        return self._last

    def _columns(self, layout: _Layout, group: str, rank: int | None) -> list[Columns | None]:
        counter = layout.names[layout.steps[0]] if layout.steps else ""
        keys = [replace(_key(layout.names[i], group, rank), counter=counter) for i in layout.metrics]
        columns = layout.columns[group, rank] = [self.recorder.columns(k) for k in keys]
        return columns

    def _long(self, line: int, at: tuple[int, int], cells: Sequence[Any], place: tuple[float, float, float], group: str,
              rank: int | None) -> None:
        name, read = cells[at[0]], number(cells[at[1]])
        if isinstance(name, str) and name and read is not None:
            self.recorder.add(line, [(_key(name[:200], group, rank), read)], step=place[0], epoch=place[1],
                              time=place[2])

    def run(self) -> Run:
        """What the rows tell, without an artifact."""
        if self.tells_events:
            members = frozenset(n for names in self._layouts for n in names)
            held = {k: c for k, n in self.recorder.counts().items() if n and (c := self.recorder.columns(k))}
            own = told_by_logger(held, members)
            self.of_logger = remark(own)
            self.recorder.forget(own)
        self._settle()
        self.recorder.count_apart()
        factors = {k: k.name.factor for k in self.recorder.counts() if k.name.factor != 1.0}
        self.recorder.scale(factors)
        series, self.twins = without_twins(self.recorder.series())
        return Run(series=series, planned_steps=self.planned, notes=tuple(self.notes))


    def _settle(self) -> None:
        """Lets a counter that starts over with each epoch count on, as `settle` does for lines of text."""
        self.recorder.even_out()
        step, epoch = self.recorder.step.told(), self.recorder.epoch.told()
        at = np.flatnonzero(np.isfinite(step))
        if not np.isfinite(epoch[at]).all() or not ((np.diff(step[at]) < 0) & (np.diff(epoch[at]) > 0)).any():
            return
        counters = Counters()
        counters.slot.extend(np.where(np.isfinite(step), 0, -1).astype(np.int8))
        counters.total.extend(unknown(len(step)))
        settled = settle(step, epoch, counters)
        self.recorder.step.put(0, settled.step)
        self.of_steps = settled.remark


def _key(name: str, group: str, rank: int | None) -> Key:
    return Key(name, identify(name).group or group or TRAIN, rank)


def _or_else(numbers: Floats, good: Mask, other: Floats) -> Floats:
    """The numbers where they are good, else the others."""
    return numbers if good.all() else np.where(good, numbers, other)


def _in_seconds(time: Floats) -> Floats:
    """Times of which those in milliseconds since 1970 become seconds."""
    late = time > 1e11
    return np.where(late, time / 1000.0, time) if late.any() else time


def _any_of(masks: Sequence[Mask], count: int) -> Mask:
    """Which of so many rows one of the masks holds for."""
    found = np.zeros(count, np.bool_)
    for mask in masks:
        found |= mask
        if found.all():
            break
    return found


def _present(numbers: Floats, there: Mask) -> tuple[Records, Floats]:
    """The rows with a number, and these."""
    if there.all():
        return slice(0, len(numbers)), numbers
    at = np.flatnonzero(there)
    return at, numbers[at]


def _or_nan(read: float | None) -> float:
    return math.nan if read is None else read


def _whole(read: float | None) -> int | None:
    return int(read) if read is not None and math.isfinite(read) else None
