"""The series of one part run at another pace than all others: they were sampled at another rate.

Windows of as many samples last twice as long where every second sample was dropped: what beats once a second beats
twice as often there. Level and spread are the same, so that nothing else tells it. The mean spectrum of the part is
that of the others, stretched by one ratio, and theirs agree among each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Column
from traindx_tools.on_data.cuts import Cut, by_field, by_file, told_by_another_field
from traindx_tools.on_data.places import number, place, short
from traindx_tools.on_data.rate_ratios import (
    APART,
    LEFT,
    MOST_ROWS,
    TIMES,
    Stretched,
    spectrum,
    stretched,
    time_axis,
)
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

ROWS, PARTS = 24, 4

RULE = Rule(
    id="D202",
    name="another-pace",
    title="The series of one part run at another pace than all others",
    severity=Severity.HIGH,
    sees="the mean spectrum of rows of samples, by file and by where the rows come from, stretched against the others'",
    matters="The same event is another signal there: a model learns the recorder, or fails on that part.",
    alike=("A source with other frequencies: no stretch brings them to those of the others.",
           "Noise that is alike at every pace: nothing is told of it.",
           "A field or a manifest that says the rate of the part: a remark."),
    confirm=("Plot ten rows of the part over ten of another one.", "Resample them by the named ratio and train again."),
    thresholds={
        "apart": Threshold(APART, "logarithm of power", "that the spectrum is off at least"),
        "times": Threshold(TIMES, "times", "as far as that of any other part"),
        "left": Threshold(LEFT, "of that", "which is left after stretching, at most"),
        "rows": Threshold(ROWS, "rows", "of each part"),
        "parts": Threshold(PARTS, "parts", "fewer tell no odd one"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """At most one finding for each field of a set."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        for name in data.fields if group else ():
            columns = [s.columns.get(name) for s in group]
            if all(c is not None and _is_series(c) for c in columns):
                found = next(_of_field(group, name, data.labels), None)
                if found is not None:
                    yield found


def _is_series(column: Column) -> bool:
    return column.kind == "number" and column.is_float and time_axis(column.row_shape) is not None


def _of_field(group: Sequence[Shard], name: str, labels: Sequence[str]) -> Iterator[Finding]:
    if len({s.columns[name].row_shape for s in group}) > 1:
        return
    axis = time_axis(group[0].columns[name].row_shape)
    assert axis is not None
    for cut in (*by_file(group), *by_field(group, labels)):
        chosen = [_rows_of(cut, part) for part in range(len(cut.names))]
        if len(chosen) < PARTS or not cut.origin or any(sum(map(len, c)) < ROWS for c in chosen):
            continue
        found = stretched([spectrum(np.concatenate([s.columns[name].values[r] for s, r in zip(group, rows, strict=True)
                                                    if len(r)]), axis) for rows in chosen])
        if found is not None:
            yield _finding(group, name, cut, found)
            return


def _rows_of(cut: Cut, part: int) -> list[np.ndarray]:
    """Rows of a part in each shard, at most MOST_ROWS together."""
    every = [np.flatnonzero(m == part) for m in cut.member]
    step = max(1, -(-sum(map(len, every)) // MOST_ROWS))
    return [rows[::step] for rows in every]


def _finding(group: Sequence[Shard], name: str, cut: Cut, found: Stretched) -> Finding:
    at = next(i for i, m in enumerate(cut.member) if (m == found.part).any())
    declared = told_by_another_field(group, cut, found.part, (name,))
    said = (f"{name} of {cut.told(found.part)} runs {number(found.ratio)} times as fast as in the "
            f"{len(cut.names) - 1} other parts: its mean spectrum is theirs moved by that ratio ({found.as_is:.2f} "
            f"apart as it is, {found.undone:.2f} after it, {found.usual:.2f} among the others at most), as samples of "
            "another rate are")
    return RULE.finding(
        said + (f"; {declared}" if declared else ""),
        place(group[at], name),
        group[at].name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None if cut.by == "" else Severity.MEDIUM,
        measured={"field": name, "ratio": found.ratio, "by": cut.by or "file", "part": cut.names[found.part],
                  "apart": found.as_is, "left": found.undone, "kind": "declared" if declared else "pace",
                  "shard": short(group[at])},
    )
