"""In one part of the rows a column is shifted against the others by a row or a few.

What the other columns of a row say of a number fits the number of the next row or of the one before, in one file, one
stretch or one group, while everywhere else it fits the row's own. A lag that was taken twice, a header that was read as
a row, a merge by place after a row was dropped. Columns that lag by design do so everywhere, and nothing is said; a
field that is exactly another one's next row (the next state of a transition) is left out, with that other one: both are
a series.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.chains import chained_fields
from traindx_tools.on_data.column import Column
from traindx_tools.on_data.cuts import by_field, told_by_another_field
from traindx_tools.on_data.field_lags import FEWEST, MOST_PART, OUTSIDE, REVERSED, Lagged, changes_of, lagged
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.roles import is_id_name, is_identifier
from traindx_tools.on_data.row_fit import TOLD, fits
from traindx_tools.on_data.row_lengths import with_lengths
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.stretches import Stretch
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.transitions import fits_of_transitions
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FILLED = 0.99
"""Share of the cells of a column that hold a number."""
RUNS = 4
"""Numbers of runs, and rows of each, at least."""
MOST_ROWS = 50_000
"""Rows of a file; of a longer one neighbours would not be looked at."""

RULE = Rule(
    id="D153",
    name="shifted-field",
    title="In one part a column is shifted by some rows",
    severity=Severity.HIGH,
    sees="how well each number fits what the other columns say of its row, and of the rows around it",
    matters="Inputs and targets of different rows are paired there; averages over all rows hide it.",
    alike=("A column that lags by design: it does so everywhere.", "A part with more noise: no neighbour fits better."),
    confirm=("Print the named column beside the others at the first named rows.", "Move it back in a copy."),
    thresholds={
        "told": Threshold(TOLD, "share of the variance", "that the other columns must tell of the column"),
        "outside": Threshold(OUTSIDE, "share of the rows outside", "that a neighbour's number fits better, at most"),
        "reversed": Threshold(REVERSED, "share of the rows", "by which the part falls short of the contrary of that"),
        "most": Threshold(MOST_PART, "share of all rows", "of the part"),
        "rows": Threshold(FEWEST, "rows", "of the part, and outside"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all columns, parts and lags"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each split: the column and the part that are surest."""
    for data in view.sets:
        for group in data.splits.values():
            group = tuple(s for s in group if s.columns and s.rows >= FEWEST)
            if group and all(s.numbers is None and s.rows <= MOST_ROWS for s in group):
                yield from _of_group(data, group)
            elif group and all(s.numbers is None for s in group):
                yield from _of_transitions(data, group)


def _of_group(data: DataSet, group: Sequence[Shard]) -> Iterator[Finding]:
    by_design = chained_fields(group)
    fields = [n for n in data.fields if n not in by_design and all(
        (c := s.columns.get(n)) is not None and not is_identifier(c) and not is_id_name(n) and _is_whole(c)
        for s in group)]
    cuts = list(by_field(group, data.labels))
    parts = sum(len(c.names) for c in cuts) + len(group)
    # of a slow series the changes tell rows apart, not the values; of texts and lists how long they are
    for some in (group, changes_of(group, fields), with_lengths(group)):
        made = list(fits(some, fields, data.labels, MOST_ROWS)) if some else []
        found = [(name, told, one) for name, told, pairs, _ in made
                 if (one := lagged(pairs, cuts, 2 * len(made) * parts)) is not None]
        if found:
            yield _finding(group, found)
            return
    yield from _of_transitions(data, group)


def _of_transitions(data: DataSet, group: Sequence[Shard]) -> Iterator[Finding]:
    """Numbers of a step from a state to the next one, which tell by themselves no more than the state does."""
    cuts = list(by_field(group, data.labels))
    parts = sum(len(c.names) for c in cuts) + len(group)
    made = list(fits_of_transitions(group, data.fields))
    found = [(name, told, one) for name, told, pairs in made
             if (one := lagged(pairs, cuts, 2 * len(made) * parts)) is not None]
    if found:
        yield _finding(group, found)


def _numbered(shard: Shard, stretch: Stretch) -> str:
    """` (episode 360..619)`: by a whole number of each row that only grows, as runs of rows are numbered."""
    for name, column in shard.columns.items():
        if column.kind == "number" and column.values.dtype.kind in "iu" and not column.row_shape:
            steps = np.diff(column.values.astype(np.int64)) if column.rows == shard.rows else np.array([-1])
            if (steps >= 0).all() and RUNS <= int((steps > 0).sum()) <= shard.rows // RUNS:
                return f" ({name} {column.values[stretch.start]}..{column.values[stretch.end - 1]})"
    return ""


def _is_whole(column: Column) -> bool:
    """Whether hardly a cell is empty: what is said of the rows beside an empty one is no worse than of its own."""
    if column.kind != "number" or column.values.dtype.kind != "f":
        return column.missing is None
    return float(np.isfinite(column.values).mean()) >= FILLED


def _finding(group: Sequence[Shard], found: Sequence[tuple[str, str, Lagged]]) -> Finding:
    name, told, best = max(found, key=lambda f: (round(f[2].inside, 2), -f[2].log_chance))
    near = [(n, f.lag) for n, _, f in found
            if (f.cut, f.part, f.index, abs(f.lag)) == (best.cut, best.part, best.index, abs(best.lag))
            and f.inside >= best.inside - 0.02]
    at, declared = best.index, ""
    if best.cut is not None:
        at = next(i for i, m in enumerate(best.cut.member) if (m == best.part).any())
        declared = told_by_another_field(group, best.cut, best.part, (name,))
        where = best.cut.told(best.part)
    elif best.stretch is not None:
        where = f"rows {best.stretch.start}..{best.stretch.end - 1} of {short(group[at])}"
        where += _numbered(group[at], best.stretch)
    else:
        where = short(group[at])
    feature = told.partition("which is ")[2] or told.partition("how far ")[2].partition(" is from")[0]
    column = f"{name} ({feature})" if feature.startswith("feature") else name
    also = list(dict.fromkeys(n for n, _ in near if n != name))
    said = (
        f"{column} is shifted by {abs(best.lag)} row{'s' * (abs(best.lag) != 1)} in {where} (its numbers stand too "
        f"{'late' if best.lag > 0 else 'early'}): what the other columns say of a row fits the number {abs(best.lag)} "
        f"{'behind' if best.lag > 0 else 'before'} better in {percent(best.inside)} of these rows, and in "
        f"{percent(best.outside)} of the others"
    )
    said += f" (or {', '.join(also)} the other way)" if also else ""
    said += f"; {declared}" if declared else ""
    stretch = best.stretch
    rows = (stretch.start, stretch.end - 1) if stretch is not None else (0, group[at].rows - 1)
    return RULE.finding(
        said,
        place(group[at], name),
        group[at].name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None,
        measured={
            "field": name, "fields": (name, *also), "lag": best.lag, "inside": best.inside, "outside": best.outside,
            "log_p": best.log_chance, "rows": rows, "shard": short(group[at]),
            "kind": "group" if best.cut is not None else "stretch" if stretch is not None else "shard",
        },
    )
