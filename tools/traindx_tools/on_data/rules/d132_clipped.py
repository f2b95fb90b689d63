"""In a stretch of rows a measurement stops at a level that it passes in the others: it was clipped there.

A sensor of a narrower range, an amplifier that saturates, a converter of other limits. What is clipped throughout, at
the end of its type or of its scale, is a choice and nothing is said; neither of numbers that are rounded, of marks that
stand apart from the rest, nor of parts each of which has a bound of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.clipping import FEWEST, NEAR, RUN, Clipped, clipped, peaks_of_numbers, peaks_of_signals
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.places import number, place, short
from traindx_tools.on_data.roles import is_id_name, is_identifier
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SIGNAL = 32
"""Samples along the longest axis from which on rows are signals; below, each feature is a number."""
MOST_PARTS = 64
MOST_VALUES = 2**22
"""Of a field in all files together: of more, every second row is looked at, or every third."""

RULE = Rule(
    id="D132",
    name="clipped",
    title="A stretch of rows is clipped",
    severity=Severity.MEDIUM,
    sees="how often a field, a feature or a channel has exactly the level that no row of a stretch passes",
    matters="What lay beyond is lost: rows look alike that differed, and spectra have overtones that were not there.",
    alike=(
        "A quiet part: it does not come to one level again and again.",
        "Rounded numbers: other values recur as well.",
        "A bound of the quantity, or of the type: no row passes it.",
        "A value of its own, such as the reward of doing nothing: rows elsewhere have it too.",
    ),
    confirm=("Plot the named rows beside others.", "Ask which device or which step wrote them."),
    thresholds={
        "fewest": Threshold(FEWEST, "rows", "at the level, and beyond it elsewhere"),
        "run": Threshold(RUN, "samples in a row", "of a signal at the level; a rounded peak has two"),
        "near": Threshold(NEAR, "standard deviations", "below the level within which the next values lie"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all stretches, fields, levels and ends"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """The surest stretch of each field."""
    for data in view.sets:
        for name in data.fields:
            for group in data.siblings(name):
                group = tuple(s for s in group if s.rows and _measured(s.columns[name]))
                if group and len({s.columns[name].row_shape for s in group}) == 1:
                    yield from _of_field(data, group, name, view.comparisons)


def _measured(column: Column) -> bool:
    """Fractions, and sound as it is stored; other whole numbers are counts, tokens and pixels."""
    sound = column.kind == "number" and column.values.dtype == np.int16 and max(column.row_shape, default=0) >= SIGNAL
    return (column.is_float or sound) and not is_identifier(column) and not is_id_name(column.name)


def _of_field(data: DataSet, group: Sequence[Shard], name: str, comparisons: int) -> Iterator[Finding]:
    if name in data.labels:
        return
    step = -(-sum(s.columns[name].values.size for s in group) // MOST_VALUES)
    parts, signal = _parts(group, name, max(1, step))
    best: tuple[Clipped, str, int] | None = None
    for told, values in parts:
        for sign in (1, -1):
            peaks = peaks_of_signals(sign * values) if signal else peaks_of_numbers(sign * values)
            found = clipped(peaks, comparisons * len(parts))
            if found is not None and found.log_chance < math.log(LEVEL) and (
                best is None or found.log_chance < best[0].log_chance
            ):
                best = found, told, sign
    if best is not None:
        yield _finding(group, name, max(1, step), *best)


def _parts(group: Sequence[Shard], name: str, step: int) -> tuple[list[tuple[str, Array]], bool]:
    """Each feature or channel with its name, float64 shape (rows,) or (rows, samples), and whether rows are signals."""
    shape = group[0].columns[name].row_shape
    if max(shape, default=1) < SIGNAL:
        made = [s.columns[name].by_feature for s in group]
        return [(f"feature {i} of " * bool(shape), np.concatenate([m[i, ::step] for m in made]).astype(np.float64))
                for i in range(min(MOST_PARTS, len(made[0])))], False
    values = np.concatenate([np.asarray(s.columns[name].values[::step]) for s in group]).astype(np.float64)
    axis = int(np.argmax(shape)) + 1
    moved = np.moveaxis(values, axis, -1).reshape(len(values), -1, values.shape[axis])
    several = moved.shape[1] > 1
    return [(f"channel {i} of " * several, moved[:, i]) for i in range(min(MOST_PARTS, moved.shape[1]))], True


def _finding(group: Sequence[Shard], name: str, step: int, seen: Clipped, told: str, sign: int) -> Finding:
    looked_at = [-(-s.rows // step) for s in group]
    ends = np.cumsum(looked_at)
    which = int(np.searchsorted(ends, seen.stretch.start, side="right"))
    shard, offset = group[which], int(ends[which]) - looked_at[which]
    first, last = (seen.stretch.start - offset) * step, (seen.stretch.end - 1 - offset) * step
    over = f" (and on into {short(group[which + 1])})" if last >= shard.rows else ""
    last = min(last, shard.rows - 1)
    way, level = ("above", "below")[sign < 0], sign * seen.level
    return RULE.finding(
        f"{told}{name} in {shard.row(first)} to {shard.row(last)} of {short(shard)}{over} stops at {number(level)}: "
        f"{seen.at_level:,} of these rows have exactly that and none lies {way} it, as {seen.beyond:,} other rows do",
        place(shard, name),
        shard.name,
        bearing=Bearing.SIGN,
        measured={"field": name, "rows": (first, last), "level": level, "at_level": seen.at_level,
                  "beyond": seen.beyond, "shard": short(shard)},
    )
