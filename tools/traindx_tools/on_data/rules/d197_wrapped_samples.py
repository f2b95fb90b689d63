"""Samples of some recordings wrapped around at the edge of their type: from one to the next they change the sign.

A gain was applied to whole numbers, or a sum was kept in a type too small for it: what went over the top came in at the
bottom. Each such place is a click over the whole spectrum, and the level says nothing of it, since it is that of a loud
recording. The other recordings hold none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import by_field, by_file
from traindx_tools.on_data.origins import groups_of, in_common
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.roles import is_id_name, is_identifier, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
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
           "Angles that wrap by design: they do so in all recordings, and nothing is said."),
    confirm=("Plot the samples around the first jump of a named recording, as stored and with the range added.",),
    thresholds={
        "jump": Threshold(JUMP, "of the full range", "from one sample to the next"),
        "on": Threshold(ON, "of the jumps", "after which the series goes on as it came, with the range added"),
        "back": Threshold(BACK, "of the jumps", "in the rarer direction"),
        "jumps": Threshold(FEWEST, "jumps", "of a recording"),
        "most": Threshold(MOST, "of the recordings", "that wrap, at most"),
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
            yield from _of_column(data, group, name)


def _of_sounds(shard: Shard, view: View) -> Iterator[Finding]:
    assert shard.wraps is not None
    odd = shard.wraps >= FEWEST
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
    values = np.concatenate([np.asarray(c.values, np.float64) for c in columns])
    full = range_of(values)[0] if len(values) <= MOST_VALUES else 0.0
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
