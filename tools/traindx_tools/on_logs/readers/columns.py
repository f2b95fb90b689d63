"""Tables of named columns: which column is the step, which the epoch, the time, the group; the rest are metrics.

Wide form: a column a metric. Long form: a column holds the metric's name, another its value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from traindx_tools.on_logs.readers import prefixes
from traindx_tools.on_logs.readers.counters import EPOCH_WORDS, STEP_WORDS
from traindx_tools.on_logs.readers.names import GROUPS, TRAIN, identify, words
from traindx_tools.on_logs.readers.numbers import value
from traindx_tools.on_logs.readers.recorder import Key, Recorder
from traindx_tools.on_logs.run import Run

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
_SKIPPED = frozenset({"", "index", "unnamed: 0", "percentage", "remaining_time", "eta", "run", "run_id", "seed", "id",
                      "epochs", "pid", "iterations", "time/iterations", "eta_seconds", "host", "hostname",
                      "experiment"})


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
    return bool(known) or (METRIC in roles and (STEP in roles or EPOCH in roles)) or is_long(names)


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
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, (int, float)):
        return _as_float(cell)
    if not isinstance(cell, str):
        return None
    text = cell.strip()
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return value(text.rstrip("%")) if text else None


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
class RowReading:
    """Rows of a table or of JSON objects, one after the other."""

    source: str
    recorder: Recorder = field(init=False)
    planned: float | None = None
    skipped: int = 0
    _keys: dict[tuple[str, str, int | None], Key] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.source)

    def row(self, line: int, cells: Mapping[str, Any]) -> None:
        """Reads one row: cells by column name, empty cells absent or None."""
        step = epoch = time = math.nan
        group, rank, sure = "", None, -1
        metrics: list[tuple[str, float]] = []
        long = is_long(cells) if len(cells) < 12 else False
        for column, cell in cells.items():
            kind = role(column)
            if kind is METRIC:
                read = number(cell)
                if read is not None:
                    metrics.append((column, read))
            elif kind is STEP:
                read, found = number(cell), sureness(column)
                if read is not None and found > sure and read.is_integer():
                    step, sure = read, found
            elif kind is EPOCH:
                read = number(cell)
                epoch = math.nan if read is None else read
            elif kind is TIME:
                time = moment(cell)
            elif kind is GROUP:
                group = GROUPS.get(str(cell).strip().lower(), "")
            elif kind is RANK:
                read = number(cell)
                rank = None if read is None or not math.isfinite(read) else int(read)
            elif kind is TOTAL:
                self.planned = number(cell)
        if long:
            metrics = _long_metrics(cells)
        if metrics:
            self.recorder.add(line, [(self._key(c, group, rank), v) for c, v in metrics], step=step, epoch=epoch,
                              time=time)

    def _key(self, column: str, group: str, rank: int | None) -> Key:
        key = self._keys.get((column, group, rank))
        if key is None:
            name = identify(column)
            key = self._keys[column, group, rank] = Key(column, name.group or group or TRAIN, rank)
        return key

    def run(self) -> Run:
        """What the rows tell, without an artifact."""
        factors = {k: k.name.factor for k in self.recorder.counts() if k.name.factor != 1.0}
        self.recorder.scale(factors)
        return Run(series=self.recorder.series(), planned_steps=self.planned)


def _long_metrics(cells: Mapping[str, Any]) -> list[tuple[str, float]]:
    by_name = {c.strip().lower(): v for c, v in cells.items()}
    name = next((str(by_name[n]) for n in by_name if n in _NAMES), "")
    read = number(next((by_name[n] for n in by_name if n in _VALUES), None))
    return [(name, read)] if name and read is not None else []


