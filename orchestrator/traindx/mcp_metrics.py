"""Metrics as a model reads them best: a summary line a metric, or the values of a few, thinned but with every event."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from traindx_tools.errors import BadUsage
from traindx_tools.on_logs.run import Run, Series

SUMMARY = ("metric", "group", "original", "source", "rank", "records", "unit", "first_at", "last_at", "first", "last",
           "min", "max", "nonfinite", "first_nonfinite_at", "first_nonfinite_line")
ROW = ("metric", "group", "source", "rank", "unit", "at", "value", "line")


def summary(series: Iterable[Series]) -> str:
    """CSV with one line a metric: how long, from where to where, extremes, and where it first was not finite."""
    return _csv(SUMMARY, (_summary_row(s) for s in series if len(s)))


def values(series: Iterable[Series], start: float | None, end: float | None, most: int) -> str:
    """CSV with one line a value; `at` counts what `unit` says. At most `most` values of each metric."""
    rows: list[Sequence[object]] = []
    for s in series:
        inside = np.flatnonzero((s.position >= (-np.inf if start is None else start))
                                & (s.position <= (np.inf if end is None else end)))
        rows += [(s.name, s.group, s.source, _known(s.rank), s.unit, _number(s.position[i]), _number(s.values[i]),
                  int(s.line[i])) for i in inside[thinned(s.values[inside], most)]]
    return _csv(ROW, rows)


def chosen(run: Run, names: Sequence[str], group: str) -> list[Series]:
    """The series of a group whose canonical or original name is among the names (globs). All where none is given.

    Raises BadUsage that names the metrics that there are.
    """
    mine = [s for s in run.series if len(s) and group in ("", s.group)]
    found = [s for s in mine if not names or any(fnmatchcase(s.name, n) or fnmatchcase(s.original, n) for n in names)]
    if names and not found:
        there = ", ".join(dict.fromkeys(f"{s.group} {s.name}" for s in run.series if len(s))) or "none at all"
        raise BadUsage(f"no metric is called {', '.join(names)}{f' in {group}' if group else ''}. There are: {there}")
    return found


def thinned(numbers: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Indices of at most `most` values: the ends, the extremes, each change to or from non-finite, the rest evenly."""
    n = len(numbers)
    if n <= most:
        return np.arange(n, dtype=np.int64)
    finite = np.isfinite(numbers)
    changes = np.flatnonzero(finite[1:] != finite[:-1])
    keep = [0, n - 1, *(int(i) for c in changes[: most // 4] for i in (c, c + 1))]
    if finite.any():
        keep += [int(np.argmin(np.where(finite, numbers, np.inf))), int(np.argmax(np.where(finite, numbers, -np.inf)))]
    kept = list(dict.fromkeys(keep))[:most]
    even = np.linspace(0, n - 1, most - len(kept), dtype=np.int64) if most > len(kept) else np.array([], dtype=np.int64)
    return np.unique(np.concatenate([np.array(kept, dtype=np.int64), even]))


def _summary_row(s: Series) -> Sequence[object]:
    finite = s.values[s.finite]
    bad = np.flatnonzero(~s.finite)
    return (s.name, s.group, s.original, s.source, _known(s.rank), len(s), s.unit, _number(s.position[0]),
            _number(s.position[-1]), _number(s.values[0]), _number(s.values[-1]),
            _number(finite.min()) if len(finite) else "", _number(finite.max()) if len(finite) else "", len(bad),
            _number(s.position[bad[0]]) if len(bad) else "", int(s.line[bad[0]]) if len(bad) else "")


def _known(rank: int | None) -> object:
    return "" if rank is None else rank


def _number(value: float) -> str:
    return f"{float(value):.10g}"


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()
