"""The canonical table of a run's metrics: one row a value, printable as text, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import Run, Series

FORMATS = ("table", "csv", "json")
COLUMNS = ("step", "epoch", "time", "group", "metric", "original", "value", "line", "source", "rank")


@dataclass(frozen=True)
class MetricRow:
    """One value. `step`, `epoch`, `time` (seconds since the first record) are None where the log gives none."""

    step: float | None
    epoch: float | None
    time: float | None
    group: str
    metric: str
    original: str
    value: float
    line: int
    source: str
    rank: int | None = None


@dataclass(frozen=True, eq=False)
class MetricsTable:
    """All metrics of a run under canonical names."""

    series: tuple[Series, ...]

    def __len__(self) -> int:
        return sum(len(s) for s in self.series)

    def rows(self) -> Iterator[MetricRow]:
        """The values, series by series, in the order in which they were written."""
        for s in self.series:
            for i in range(len(s)):
                yield MetricRow(_known(s.step[i]), _known(s.epoch[i]), _known(s.time[i]), s.group, s.name, s.original,
                                float(s.values[i]), int(s.line[i]), s.source, s.rank)

    def render(self, form: str = "table") -> str:
        """The table as text: "table" (a row a place, a column a metric), "csv" or "json" (a row a value).

        Non-finite values are nan, inf, -inf in table and CSV and strings in JSON. Raises BadUsage for another format.
        """
        if form not in FORMATS:
            raise BadUsage(f"There is no format {form!r}. Choose one of: {', '.join(FORMATS)}.")
        return {"table": self._text, "csv": self._csv, "json": self._json}[form]()

    def _csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in self.rows():
            writer.writerow(["" if cell is None else _plain(cell) for cell in _cells(row)])
        return out.getvalue()

    def _json(self) -> str:
        rows = [dict(zip(COLUMNS, (_json_cell(c) for c in _cells(row)), strict=False)) for row in self.rows()]
        return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"

    def _text(self) -> str:
        blocks = [_block(source, group, [s for s in self.series if (s.source, s.group) == (source, group)])
                  for source, group in dict.fromkeys((s.source, s.group) for s in self.series)]
        return "\n".join(blocks) if blocks else "no metrics were found\n"


def _cells(row: MetricRow) -> tuple[Any, ...]:
    return tuple(getattr(row, column) for column in COLUMNS)


def _known(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _plain(cell: Any) -> Any:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return int(cell)
    return cell


def _json_cell(cell: Any) -> Any:
    return str(cell) if isinstance(cell, float) and not math.isfinite(cell) else _plain(cell)


def _block(source: str, group: str, series: Sequence[Series]) -> str:
    """A group of a source with one line a record: a column for each metric, under its canonical name."""
    titles = [s.name if s.rank is None else f"{s.name}[{s.rank}]" for s in series]
    records: dict[int, dict[str, Any]] = {}
    for title, s in zip(titles, series, strict=False):
        for i in range(len(s)):
            record = records.setdefault(int(s.line[i]), {"line": int(s.line[i])})
            record.setdefault("step", _known(s.step[i]))
            record.setdefault("epoch", _known(s.epoch[i]))
            record[title] = float(s.values[i])
    places = [p for p in ("step", "epoch") if any(r.get(p) is not None for r in records.values())]
    head = ["line", *places, *dict.fromkeys(titles)]
    body = [[_shown(records[line].get(column)) for column in head] for line in sorted(records)]
    widths = [max(len(head[c]), *(len(row[c]) for row in body)) for c in range(len(head))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=False)) for row in [head, *body]]
    originals = ", ".join(f"{s.original} -> {s.name}" for s in series if s.original != s.name)
    return "\n".join([f"{source} ({group})", *([f"names: {originals}"] if originals else []), *lines, ""])


def _shown(cell: Any) -> str:
    return "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def table_of(run: Run) -> MetricsTable:
    """The metrics of a run that was read already."""
    return MetricsTable(run.series)


def extract_training_metrics(path_or_paths: str | Path | Sequence[str | Path]) -> MetricsTable:
    """Every metric of a run in one table: a path, several, a folder, a glob, "-" or an fsspec URL.

    Raises UnreadableInput where nothing can be read.
    """
    return table_of(read_run(path_or_paths))
