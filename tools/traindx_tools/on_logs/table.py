"""The canonical table of a run's metrics: one row a value, printable as text, CSV or JSON."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.on_logs.in_memory import History, taken_out
from traindx_tools.on_logs.notebook_source import by_cells
from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.sources import as_paths

FORMATS = ("table", "csv", "json")
ALL_ROWS = "--rows 0 shows all"
"""What a command says below some of the rows."""
IN_A_CELL = 10
"""Rows of each source and group that a notebook shows."""
MOST_COLUMNS = 200
"""Metrics of one source and group that the text table shows side by side; more is no table for a person."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
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

    def __repr__(self) -> str:
        names = [f"{s} ({len(s):,})" for s in self.series[:8]]
        more = f", {len(self.series) - 8} more" if len(self.series) > 8 else ""
        return f"<MetricsTable of {len(self):,} values: {', '.join(names)}{more}>"

    def _repr_html_(self) -> str:
        """Its beginning and end, as a cell of a notebook shows it."""
        told = self.render(rows=IN_A_CELL).replace(ALL_ROWS, "print(table.render()) shows all")
        return f"<pre>{html.escape(repr(self))}\n{html.escape(told)}</pre>"

    def rows(self) -> Iterator[MetricRow]:
        """The values, series by series, in the order in which they were written."""
        for s in self.series:
            for i in range(len(s)):
                yield MetricRow(_known(s.step[i]), _known(s.epoch[i]), _known(s.time[i]), s.group, s.name, s.original,
                                float(s.values[i]), int(s.line[i]), s.source, s.rank)

    def render(self, form: str = "table", rows: int = 0) -> str:
        """The table as text: "table" (a row a place, a column a metric), "csv" or "json" (a row a value).

        `rows`: of a "table", how many of each source and group are shown; 0: all of them. Non-finite values are
        nan, inf, -inf in table and CSV and strings in JSON. Raises BadUsage for another format.
        """
        if form not in FORMATS:
            raise BadUsage(f"There is no format {form!r}. Choose one of: {', '.join(FORMATS)}.")
        return self._text(rows) if form == "table" else self._csv() if form == "csv" else self._json()

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

    def _text(self, rows: int) -> str:
        blocks = [_block(source, group, [s for s in self.series if (s.source, s.group) == (source, group)], rows)
                  for source, group in dict.fromkeys((s.source, s.group) for s in self.series)]
        return "\n".join(blocks) if blocks else "no metrics were found\n"


def _cells(row: MetricRow) -> tuple[Any, ...]:
    return tuple(getattr(row, column) for column in COLUMNS)


def _order(number: float) -> float:
    return float(number) if math.isfinite(number) else -math.inf


def _known(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _plain(cell: Any) -> Any:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return int(cell)
    return cell


def _json_cell(cell: Any) -> Any:
    return str(cell) if isinstance(cell, float) and not math.isfinite(cell) else _plain(cell)


_Place = tuple[int, float, float, int]
"""A record: its line, step and epoch (-inf where not known), and which of the like it is. A progress bar redraws one
line for a whole epoch, so that the line alone is no record."""


def _chosen(records: dict[_Place, dict[str, Any]], rows: int) -> list[_Place]:
    """The records that are shown: the ends, every so many between them, and the first that holds what is not finite."""
    lines = sorted(records)
    if not rows or len(lines) <= rows:
        return lines
    spread = {lines[round(i * (len(lines) - 1) / max(rows - 1, 1))] for i in range(rows)}
    bad = (n for n in lines if any(isinstance(v, float) and not math.isfinite(v) for v in records[n].values()))
    return sorted(spread | set([*bad][:1]))


def _block(source: str, group: str, series: Sequence[Series], rows: int = 0) -> str:
    """A group of a source with one line a record: a column for each metric, under its canonical name."""
    titles = _titles(series)
    names = list(dict.fromkeys(titles))
    records: dict[_Place, dict[str, Any]] = {}
    shown = set(names[:MOST_COLUMNS])
    for title, s in zip(titles, series, strict=False):
        if title not in shown:
            continue
        seen: defaultdict[tuple[int, float, float], int] = defaultdict(int)
        for i in range(len(s)):
            place = int(s.line[i]), _order(s.step[i]), _order(s.epoch[i])
            while title in records.get((*place, seen[place]), ()):
                seen[place] += 1
            record = records.setdefault((*place, seen[place]), {"line": place[0]})
            record.setdefault("step", _known(s.step[i]))
            record.setdefault("epoch", _known(s.epoch[i]))
            record[title] = float(s.values[i])
    places = [p for p in ("step", "epoch") if any(r.get(p) is not None for r in records.values())]
    head = ["line", *places, *names[:MOST_COLUMNS]]
    chosen = _chosen(records, rows)
    body = [[_shown(records[line].get(column)) for column in head] for line in chosen]
    widths = [max(len(head[c]), *(len(row[c]) for row in body)) for c in range(len(head))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=False)) for row in [head, *body]]
    originals = ", ".join(f"{s.original} -> {s.name}" for s in series[:MOST_COLUMNS] if s.original != s.name)
    left = f"and {len(names) - MOST_COLUMNS} more metrics: --format csv or json holds them all"
    hidden = len(records) - len(chosen)
    fewer = [f"{len(chosen)} of {len(records)} rows, evenly spread: {ALL_ROWS}"] if hidden else []
    return "\n".join([_plain_text(f"{source} ({group})"), *([_plain_text(f"names: {originals}")] if originals else []),
                      *map(_plain_text, lines), *([left] if len(names) > MOST_COLUMNS else []), *fewer, ""])


def _titles(series: Sequence[Series]) -> list[str]:
    """A title for each column: where two tell one metric, with the name as written, or what its steps count."""
    titles = [s.name if s.rank is None else f"{s.name}[{s.rank}]" for s in series]
    twice = {t for t in titles if titles.count(t) > 1} if len(series) <= MOST_COLUMNS else set()
    alike = {t: len({s.original for s, u in zip(series, titles, strict=True) if u == t}) == 1 for t in twice}
    return [t if t not in twice or not (said := s.counter if alike[t] else s.original) or said == t
            else f"{t} ({said})" for t, s in zip(titles, series, strict=True)]


def _plain_text(text: str) -> str:
    """Names come from logs and files: they must not reach a terminal as commands to it."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def _shown(cell: Any) -> str:
    return "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def table_of(run: Run) -> MetricsTable:
    """The metrics of a run that was read already."""
    return MetricsTable(tuple(by_cells(run.series)))


def extract_training_metrics(path_or_paths: str | Path | Sequence[str | Path] | History) -> MetricsTable:
    """Every metric of a run in one table: a path, several, a folder, a glob, "-", an fsspec URL or a history in memory.

    Raises UnreadableInput where nothing can be read, BadUsage for what is neither a path nor a history.
    """
    paths, lines = taken_out(path_or_paths)
    return table_of(read_run(as_paths(paths), stdin=lines))
