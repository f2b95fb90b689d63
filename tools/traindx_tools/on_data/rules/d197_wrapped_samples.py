"""Samples of some recordings wrapped around at the edge of their type: from one to the next they change the sign.

A gain was applied to whole numbers, or a sum was kept in a type too small for it: what went over the top came in at the
bottom. Each such place is a click over the whole spectrum, and the level says nothing of it, since it is that of a loud
recording. The other recordings hold none. Values in no order, such as sums of events, are told by the other files:
theirs pass the edge that those of one file never do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import by_field, by_file
from traindx_tools.on_data.origins import groups_of, in_common
from traindx_tools.on_data.places import listed, percent, place, rows, short
from traindx_tools.on_data.roles import is_id_name, is_identifier, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.on_data.wrapped_values import ALIKE, NEAR, told_features, wrapped_values
from traindx_tools.on_data.wraps import BACK, JUMP, ON, range_of, range_of_fractions, wraps_in
from traindx_tools.rules import Rule, Threshold

FEWEST = 4
"""Jumps of a recording."""
MOST = 0.5
"""Share of the recordings that may have them."""
SERIES = 32
MOST_ROWS, FEWEST_ROWS = 4000, 40
"""Rows of all files together, and of each file at least."""
MOST_VALUES = 2**24

RULE = Rule(
    id="D197",
    name="wrapped-samples",
    title="Samples wrapped around at the edge of their type",
    severity=Severity.MEDIUM,
    sees="steps from sample to sample of sounds, of rows of whole numbers and of columns of them in their order",
    matters="Each place is a click over the whole spectrum: a model learns the recording and not what is in it.",
    alike=("Noise and square waves at full scale: they go on in no direction.", "Saw teeth: they never come back.",
           "Angles that wrap by design: they do so in all recordings, and nothing is said.",
           "Values that were clipped at the edge of a type, or of a smaller range: none is at the opposite edge."),
    confirm=("Plot the samples around the first jump of a named recording, as stored and with the range added.",),
    thresholds={
        "jump": Threshold(JUMP, "of the full range", "from one sample to the next"),
        "on": Threshold(ON, "of the jumps", "after which the series goes on as it came, with the range added"),
        "back": Threshold(BACK, "of the jumps", "in the rarer direction"),
        "jumps": Threshold(FEWEST, "jumps", "of a recording"),
        "most": Threshold(MOST, "of the recordings", "that wrap, at most"),
        "near": Threshold(NEAR, "of half of the range", "that values of a file come near to both edges, in no order"),
        "alike": Threshold(ALIKE, "distance of distributions", "of that file's values and the others' in that type"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for the sounds of each set, and for each field of whole numbers."""
    for data in view.sets:
        for shard in data.shards:
            if shard.wraps is not None and len(shard.wraps) == len(shard.row_names):
                yield from _of_sounds(shard, view)
        group = tuple(s for s in data.shards if s.columns and s.rows)
        for name in data.fields if group else ():
            yield from _of_rows(group, name)
            yield from list(_of_column(data, group, name)) or _of_values(data, group, name, view.comparisons)


def _of_sounds(shard: Shard, view: View) -> Iterator[Finding]:
    assert shard.wraps is not None
    odd = shard.wraps >= FEWEST
    odd &= ~shard.turned if shard.turned is not None and len(shard.turned) == len(odd) else True  # D137 tells these
    if not odd.any() or float(odd.mean()) > MOST:
        return
    ways = dict(groups_of(shard.row_names, view))
    common = in_common(odd, ways, view.comparisons)
    which = np.flatnonzero(odd)
    same = _beginning([shard.row_names[i].rsplit("/", 1)[-1] for i in which])
    yield RULE.finding(
        f"{int(odd.sum()):,} of {len(odd):,} sounds wrap around at full scale ({int(np.median(shard.wraps[which])):,} "
        f"jumps from one edge to the other in the typical one of them, after which they go on as they came): "
        f"{rows(shard, which)}" + (f"; {common[0]}" if common is not None else "")
        + (f"; their names begin with {same!r}" if len(same) > 2 and len(which) > 1 else ""),
        place(shard),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": "the sound", "count": int(odd.sum()), "of": len(odd), "kind": "sounds",
                  "jumps": int(shard.wraps.sum()), "rows": tuple(int(i) for i in which[:20]),
                  "files": tuple(shard.row_names[i] for i in which[:20]), "shard": short(shard)},
    )


def _beginning(names: Sequence[str]) -> str:
    """What all names begin with."""
    low, high = min(names), max(names)
    return low[: next((i for i, c in enumerate(low) if i >= len(high) or c != high[i]), len(low))]


def _is_measured(column: Column | None, shard: Shard) -> bool:
    return column is not None and column.kind == "number" and column.rows == shard.rows and (
        column.values.dtype.kind in "iuf") and not is_id_name(column.name) and not is_time(column.name)


def _of_rows(group: Sequence[Shard], name: str) -> Iterator[Finding]:
    """Rows of samples: the rows that wrap, of few files or groups or all along."""
    columns = [s.columns.get(name) for s in group]
    if not all(_is_measured(c, s) for c, s in zip(columns, group, strict=True)):
        return
    for shard, column in zip(group, [c for c in columns if c is not None], strict=True):
        if not column.row_shape or max(column.row_shape) < SERIES or len(column.row_shape) > 2 or (
                column.values.size > MOST_VALUES):
            return
        full = _full(column.values)
        if not full:
            continue
        most = max(FEWEST_ROWS, MOST_ROWS // len(group))
        some = np.unique(np.linspace(0, shard.rows - 1, min(shard.rows, most)).astype(np.int64))
        counts = np.array([_wraps_of_row(np.asarray(column.values[i]), full) for i in some])
        odd = counts >= FEWEST
        if odd.any() and float(odd.mean()) <= MOST:
            which = some[odd]
            yield RULE.finding(
                f"{name} of {short(shard)} wraps around at the edge of its type in {len(which):,} of {len(some):,} "
                f"rows ({percent(float(odd.mean()))}; {int(np.median(counts[odd])):,} jumps from one edge to the other "
                f"in the typical one, after which it goes on as it came): {rows(shard, which)}",
                place(shard, name),
                shard.name,
                bearing=Bearing.CAUSE,
                measured={"field": name, "count": len(which), "of": len(some), "kind": "rows",
                          "rows": tuple(int(i) for i in which[:20]), "shard": short(shard)},
            )


def _full(values: Array) -> float:
    return range_of_fractions(values) if values.dtype.kind == "f" else range_of(values)[0]


def _wraps_of_row(row: Array, full: float) -> int:
    if row.ndim == 1:
        return wraps_in(row, full)
    channels = row if row.shape[1] >= row.shape[0] else row.T
    return max(wraps_in(c, full) for c in channels[:8])


def _of_column(data: DataSet, group: Sequence[Shard], name: str) -> Iterator[Finding]:
    """A column in the order of its rows: the one file or group that wraps, where all others come nowhere near."""
    columns = [c for s in group if _is_measured(c := s.columns.get(name), s) and c is not None]
    if len(columns) < len(group) or any(c.row_shape or c.values.dtype.kind == "f" or is_identifier(c)
                                        for c in columns):
        return
    if sum(c.rows for c in columns) > MOST_VALUES:
        return
    values = np.concatenate([np.asarray(c.values, np.float64) for c in columns])
    full = range_of(values)[0]
    if not full:
        return
    for cut in (*by_file(group), *by_field(group, data.labels)):
        member = np.concatenate(cut.member)
        counts = {p: wraps_in(values[member == p], full) for p in range(len(cut.names))}
        odd = [p for p, n in counts.items() if n]
        if len(odd) == 1 and counts[odd[0]] >= 2 * FEWEST:
            at = next(i for i, m in enumerate(cut.member) if (m == odd[0]).any())
            yield RULE.finding(
                f"{name} of {cut.told(odd[0])} wraps around at the edge of its type: {counts[odd[0]]:,} jumps of "
                f"nearly {full:,.0f} from one row to the next, after which it goes on as it came; the "
                f"{len(counts) - 1} other parts hold none",
                place(group[at], name),
                group[at].name,
                bearing=Bearing.CAUSE,
                measured={"field": name, "count": counts[odd[0]], "by": cut.by or "file", "part": cut.names[odd[0]],
                          "kind": "column", "range": full, "shard": short(group[at])},
            )
            return


def _of_values(data: DataSet, group: Sequence[Shard], name: str, comparisons: int) -> Iterator[Finding]:
    """Whole numbers in no order: the few files or groups that stay within a type whose edge all others pass."""
    columns = [c for s in group if _is_measured(c := s.columns.get(name), s) and c is not None]
    if len(columns) < len(group) or len({c.row_shape for c in columns}) > 1 or any(
            c.values.dtype.kind == "f" or is_identifier(c) for c in columns) or (
            sum(c.values.size for c in columns) > MOST_VALUES):
        return
    values = np.concatenate([np.asarray(c.values, np.float64).reshape(c.rows, -1) for c in columns])
    starts = np.cumsum([0, *(s.rows for s in group)])
    for cut in (*by_file(group), *by_field(group, data.labels)):
        found = list(wrapped_values(values, np.concatenate(cut.member), len(cut.names), comparisons))
        if not found or len(found) > MOST * len(cut.names):
            continue
        first = found[0]
        at = int(np.searchsorted(starts, first.rows[0], side="right")) - 1
        which = first.rows[first.rows < starts[at + 1]] - starts[at]
        where = listed([cut.told(f.part) for f in found])
        yield RULE.finding(
            f"{told_features(first.features, values.shape[1])}{name} of {where} wrapped around in a type of "
            f"{int(np.log2(first.full))} bits: no value there passes {first.full / 2 - 1:,.0f}, the other parts "
            f"go up to {first.highest:,.0f}; {len(first.rows):,} rows hold values on the other side of zero instead, "
            f"beyond all that the others have (from {first.lowest:,.0f} on): {rows(group[at], which)}",
            place(group[at], name),
            group[at].name,
            bearing=Bearing.CAUSE,
            severity=Severity.HIGH,
            measured={"field": name, "count": len(first.rows), "by": cut.by or "file", "part": cut.names[first.part],
                      "parts": len(found), "kind": "values", "range": first.full, "shard": short(group[at]),
                      "rows": tuple(int(i) for i in which[:20]), "features": first.features[:20]},
        )
        return
