"""Chunks of a series were joined in another order than they were recorded in.

Files of a recording that were sorted by name (`part_10` before `part_2`), workers that ended in another order, a
buffer that was written from its middle. A counter or a clock in the rows goes back at a boundary and all its ranges
close without a gap in another order; or the values jump where no neighbours do, and each chunk ends where another one
begins, too closely for chance. Windows and lags across such a boundary teach what never happened, and a split by
place is no split by time. Episodes and sessions that begin anew fit nowhere, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.chunk_order import (
    FEWEST,
    GAP,
    JUMP,
    MOST_CHUNKS,
    SMOOTH,
    Reordered,
    by_counter,
    by_values,
    smooth,
)
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.names import number_of
from traindx_tools.on_data.panels import is_moment
from traindx_tools.on_data.places import listed, place, short
from traindx_tools.on_data.roles import keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.times import times_at
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MOST_ROWS = 200_000
MOST_COLUMNS = 64
FILES = 4
"""Files whose order can be told."""
IN_PLACE = 0.5
"""Share of the files that follow the one before them: below it files are in no order, as workers leave them."""
SERIAL = 0.3
"""Correlation of neighbours of any other field, from which on the order of rows matters."""
FEWEST_A_RUN = 8
"""Rows of a part that a field names, on average."""
EVEN = 0.1
"""Scatter of the steps of a counter, in its typical step."""
COUNTS = 0.9
"""Share of the steps of a counter that are as large as its typical one."""

RULE = Rule(
    id="D151",
    name="chunks-joined",
    title="Chunks of a series are joined in another order",
    severity=Severity.MEDIUM,
    sees="where counters, clocks and values break off in a file or between numbered files, and what fits to what",
    matters="Windows and lags across the boundaries never happened, and a split by place is no split by time.",
    alike=(
        "Episodes, sessions and recordings that begin anew: their beginnings fit no end.",
        "A file sorted by station and then by time: times recur.",
        "Chunks that a field tells apart: a remark.",
    ),
    confirm=("Print the rows around each boundary.", "Put the chunks in the named order in a copy and plot them."),
    thresholds={
        "smooth": Threshold(SMOOTH, "correlation of neighbours", "from which on a field is a series"),
        "jump": Threshold(JUMP, "times the largest usual step", "that a boundary has, and no link in the named order"),
        "gap": Threshold(GAP, "typical steps of a counter", "between chunks that follow each other"),
        "chunks": Threshold(MOST_CHUNKS, "chunks", "more are no chunks but shuffled rows"),
        "rows": Threshold(FEWEST, "rows", "fewer tell no usual step"),
        "level": Threshold(LEVEL, "probability", "that the ends fit by chance, over all orders"),
    },
)


@dataclass(frozen=True, eq=False)
class _Series:
    """The rows of one file, or of several one behind the other."""

    shards: tuple[Shard, ...]
    bounds: tuple[int, ...]
    """The first row of each file, as places in all."""

    def column(self, name: str) -> list[Column]:
        return [c for s in self.shards if (c := s.columns.get(name)) is not None and c.rows == s.rows]

    def at(self, place: int) -> str:
        """A row as a person finds it."""
        index = int(np.searchsorted(self.bounds, place, side="right")) - 1
        of = f" of {short(self.shards[index])}" if len(self.shards) > 1 else ""
        return f"row {place - self.bounds[index]}{of}"


def check(view: View) -> Iterator[Finding]:
    """A finding for each file; one for numbered files that are each in order."""
    for data in view.sets:
        for group in data.splits.values():
            whole = [s for s in group if FEWEST <= s.rows <= MOST_ROWS and s.numbers is None and s.columns]
            found = [f for s in whole if (f := _of_series(data, _Series((s,), (0,)), view)) is not None]
            yield from found
            if not found and len(whole) == len(group) >= FILES:
                yield from _of_files(data, whole, view)


def _of_files(data: DataSet, group: Sequence[Shard], view: View) -> Iterator[Finding]:
    names = [number_of(Path(short(s)).stem) for s in group]
    if not all(names) or len(set(names)) < len(names) or len({n.count("_") for n in names}) > 1:
        return
    ordered = sorted(group, key=lambda s: [int(n) for n in number_of(Path(short(s)).stem).split("_")])
    bounds = np.concatenate([[0], np.cumsum([s.rows for s in ordered])[:-1]])
    if sum(s.rows for s in ordered) <= MOST_ROWS:
        found = _of_series(data, _Series(tuple(ordered), tuple(bounds.tolist())), view)
        if found is not None:
            yield found


def _of_series(data: DataSet, series: _Series, view: View) -> Finding | None:
    counters, values = _columns(series)
    for name, counter in counters.items():
        found = by_counter(counter)
        if found is not None and _between_files(series, found):
            declared = _told_by_a_field(series, found) or (
                "" if _is_serial(series, values, counter) else "no other field follows this order")
            return _finding(series, found, (name,), declared)
    kept = smooth(values.values())
    found = by_values(kept, view.comparisons) if kept.size else None
    if found is None or not _between_files(series, found):
        return None
    names = tuple(dict.fromkeys(n.partition("[")[0] for n in values))
    return _finding(series, found, names, _told_by_a_field(series, found))


def _between_files(series: _Series, found: Reordered) -> bool:
    """Of several files, whether most follow the one before them, and some do not."""
    if len(series.shards) < 2:
        return True
    apart = len(set(found.starts[1:]) & set(series.bounds))
    return 1 <= apart <= (1.0 - IN_PLACE) * len(series.shards) + 1


def _columns(series: _Series) -> tuple[dict[str, Array], dict[str, Array]]:
    """Counters and clocks, and all other numbers, of all rows."""
    counters: dict[str, Array] = {}
    values: dict[str, Array] = {}
    for name in series.shards[0].columns:
        columns = series.column(name)
        if len(columns) < len(series.shards):
            continue
        if all(is_moment(c) for c in columns):
            times = [t for c in columns if (t := times_at(c, np.arange(c.rows))) is not None]
            if len(times) == len(columns):
                counters[name] = np.concatenate(times)
            continue
        widths = {int(np.prod(c.row_shape)) for c in columns}
        if len(widths) > 1 or any(c.kind != "number" or c.values.dtype.kind not in "iuf" or len(c.row_shape) > 1
                                  for c in columns) or len(values) + max(widths) > MOST_COLUMNS:
            continue
        made = [c.by_feature for c in columns]
        for k in range(len(made[0])):
            told = name if len(made[0]) == 1 else f"{name}[{k}]"
            values[told] = made[0][k] if len(made) == 1 else np.concatenate([m[k] for m in made])
            if _rises(values[told]) and _is_counter(number := values[told].astype(np.float64)):
                counters[told] = number
                del values[told]
    return counters, values


def _rises(values: Array) -> bool:
    """Whether a number mostly becomes larger from row to row: cheap, and true of every counter."""
    return bool(np.count_nonzero(values[1:] > values[:-1]) > COUNTS * (len(values) - 1))


def _is_counter(values: Array) -> bool:
    """Whether a number mostly rises by one step."""
    steps = np.diff(values)
    step = float(np.median(steps)) if len(steps) else 0.0
    return step > 0 and float(np.mean(np.abs(steps - step) <= EVEN * step)) > COUNTS


def _is_serial(series: _Series, values: dict[str, Array], counter: Array) -> bool:
    """Whether any other number follows the order of the counter: in a table of single rows the order says nothing."""
    order = np.argsort(counter, kind="stable")
    for number in values.values():
        column = np.asarray(number, np.float64)
        if not np.isfinite(column).all():
            continue
        around = column[order] - column.mean()
        size = float(around @ around)
        if size > 0 and float(around[1:] @ around[:-1]) / size > max(SERIAL, 4.0 / np.sqrt(len(column))):
            return True
    return False


def _told_by_a_field(series: _Series, found: Reordered) -> str:
    """A field that groups the rows, each value in one run, and changes at each boundary: by design."""
    for name in series.shards[0].columns:
        columns = series.column(name)
        if len(columns) < len(series.shards) or any(
            c.row_shape or c.kind == "sequence" or (c.kind == "text" and c.digests is None) for c in columns
        ):
            continue
        values = np.concatenate([keys(c) for c in columns])
        changes = np.flatnonzero(values[1:] != values[:-1]) + 1
        runs = len(changes) + 1
        if runs <= len(values) // FEWEST_A_RUN and runs == len(np.unique(values)) and set(found.starts[1:]) <= set(
            changes.tolist()
        ):
            return f"its field {name} tells the chunks apart"
    return ""


def _finding(series: _Series, found: Reordered, names: tuple[str, ...], declared: str) -> Finding:
    files = len(series.shards) > 1 and set(found.starts) <= set(series.bounds)
    inside = next((s for s in found.starts if s not in series.bounds), found.starts[1])
    at = series.shards[int(np.searchsorted(series.bounds, inside, side="right")) - 1]
    where = "the series of files" if len(series.shards) > 1 else short(at)
    cuts = [series.at(s) for s in found.starts[1:]]
    if len(series.shards) > 1:
        chunks = [series.at(s).removeprefix("row 0 of ") for s in found.starts]
    else:
        ends = [*found.starts[1:], at.rows]
        chunks = [f"{a}..{b - 1}" for a, b in zip(found.starts, ends, strict=True)]
    how = (f"{names[0]} goes back or leaps at {listed(cuts)}, and its ranges close in another order"
           if found.by == "counter" else
           f"the values jump at {listed(cuts)} as no neighbours do, and each chunk ends where another one begins")
    order = " -> ".join(chunks[k] for k in found.order[:10]) + (" ..." if len(found.order) > 10 else "")
    what = "chunks begin with" if len(series.shards) > 1 else "chunks of rows are"
    said = f"{where} is joined in another order: {how}; in order the {what} {order}"
    said += f"; {declared}" if declared else ""
    first = inside - series.bounds[series.shards.index(at)]
    return RULE.finding(
        said,
        place(at, names[0].partition("[")[0]),
        at.name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else Severity.LOW if files else None,
        measured={
            "field": names[0].partition("[")[0], "fields": names[:20], "rows": (first, at.rows - 1),
            "starts": found.starts, "order": found.order, "kind": "files" if files else found.by, "shard": short(at),
        },
    )
