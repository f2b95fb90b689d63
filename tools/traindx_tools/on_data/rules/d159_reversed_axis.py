"""In the rows of one group or file an axis of a field runs the other way.

Spectra over falling wavelengths, profiles from the ground up instead of down, channels from the last to the first: the
mean of all other rows is the profile that each row is laid against, as it is and along each axis reversed. Pictures of
files are told by D143.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, cuts_of, told_by_another_field
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.row_statistics import is_tokens
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.slices import is_padded
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHORTEST, CELLS = 8, 32
MOST_ROWS = 6000
MOST_FIELDS = 8
FEWEST = 20
INSIDE, OUTSIDE = 0.9, 0.1
PROFILE, BACK = 0.5, 0.85
SYMMETRIC, AS_REVERSED = 0.75, 0.2
"""Correlation of a profile with itself reversed, above which it is the same from both ends; and how far from it the
rows of the part are as they are, which is what reversed rows of the others would have."""
ONE_PROFILE, SLACK = 0.8, 0.1

RULE = Rule(
    id="D159",
    name="reversed-axis",
    title="An axis of a field runs the other way in one part of the rows",
    severity=Severity.HIGH,
    sees="the correlation of each row with the mean of all other parts, as it is and along each axis reversed",
    matters="The same place means another wavelength, height or channel in these rows.",
    alike=("Rows without a profile in common, such as signals and shuffled features: nothing is said.",
           "A profile that is the same from both ends: both ways fit, and nothing is said.",
           "Parts that differ by nature: reversing does not make them like the others."),
    confirm=("Plot the mean of the part beside that of the others, as it is and reversed.",),
    thresholds={
        "profile": Threshold(PROFILE, "median correlation", "of the other rows with their mean"),
        "back": Threshold(BACK, "of it", "that the rows of the part have once reversed"),
        "one": Threshold(ONE_PROFILE, "correlation", "of the mean of each part with that of the others, at least"),
        "symmetric": Threshold(SYMMETRIC, "correlation", "of a profile with itself reversed, above which none is told"),
        "inside": Threshold(INSIDE, "share of the rows", "of the part that fit better reversed"),
        "outside": Threshold(OUTSIDE, "share of the rows", "of all others that do, at most"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts, fields and axes"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each field and part."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        cuts = list(cuts_of(group, data.labels)) if group else []
        for name in _fields(group)[:MOST_FIELDS] if cuts else []:
            yield from _of_field(data, group, name, cuts, view.comparisons)


def _fields(group: Sequence[Shard]) -> list[str]:
    out = []
    for name, column in group[0].columns.items():
        columns = [c for s in group if (c := s.columns.get(name)) is not None and c.rows == s.rows]
        shapes = {c.row_shape for c in columns}
        if len(columns) == len(group) and len(shapes) == 1 and column.kind == "number" and (
                column.values.dtype.kind in "iuf" and 1 <= len(column.row_shape) <= 3
                and max(column.row_shape) >= SHORTEST and not is_tokens(column) and not is_padded(column)):
            out.append(name)
    return out


def _rows(group: Sequence[Shard], name: str) -> tuple[Array, list[Array]]:
    """float32 (rows, cells, ...): long axes in cells, each row about 0 with norm 1; the rows that were taken."""
    share = max(FEWEST, MOST_ROWS // len(group))
    some = [np.unique(np.linspace(0, s.rows - 1, min(s.rows, share)).astype(np.int64)) for s in group]
    made: list[Array] = []
    for shard, rows in zip(group, some, strict=True):
        x: Array = np.nan_to_num(np.asarray(shard.columns[name].values[rows], np.float32), posinf=0.0, neginf=0.0)
        for axis in range(1, x.ndim):
            if x.shape[axis] > CELLS:
                edges = np.linspace(0, x.shape[axis], CELLS + 1).astype(np.int64)
                shape = [1] * x.ndim
                shape[axis] = CELLS
                x = np.add.reduceat(x, edges[:-1], axis=axis) / np.diff(edges).reshape(shape)
        made.append(x)
    every: Array = np.concatenate(made)
    axes = tuple(range(1, every.ndim))
    every = every - every.mean(axis=axes, keepdims=True)
    size = np.sqrt((every**2).sum(axis=axes, keepdims=True))
    return np.asarray(every / np.maximum(size, 1e-12), np.float32), some


def _of_field(data: DataSet, group: Sequence[Shard], name: str, cuts: Sequence[Cut], comparisons: int
              ) -> Iterator[Finding]:
    x, some = _rows(group, name)
    flat = x.reshape(len(x), -1)
    total = flat.sum(axis=0, dtype=np.float64)
    long = [a for a in range(1, x.ndim) if x.shape[a] >= SHORTEST]
    tries = comparisons * len(long) * sum(len(c.names) for c in cuts)
    told: set[int] = set()
    for cut in cuts:
        if cut.by == name:
            continue
        member = np.concatenate([m[r] for m, r in zip(cut.member, some, strict=True)])
        means = np.stack([flat[member == p].mean(axis=0) if (member == p).any() else np.zeros(flat.shape[1])
                          for p in range(len(cut.names))])
        for part in range(len(cut.names)):
            inside = member == part
            if not FEWEST <= int(inside.sum()) <= len(x) // 2 or int(np.argmax(inside)) in told:
                continue
            mean = total - flat[inside].sum(axis=0, dtype=np.float64)
            profile = (mean / max(1e-12, float(np.linalg.norm(mean)))).reshape(x.shape[1:])
            for axis in long:
                found = _reversed(flat, profile, axis, inside, tries)
                if found is not None and _as_the_others(means, part, axis, profile.shape):
                    told.add(int(np.argmax(inside)))
                    yield _finding(data, group, name, cut, part, axis, x.ndim, found)
                    break


def _reversed(flat: Array, profile: Array, axis: int, inside: Array, tries: float
              ) -> tuple[float, float, float] | None:
    """Correlations of the part as it is and reversed, and of the others; None where it is no plain reversal."""
    usual, turned = profile.reshape(-1), np.flip(profile, axis - 1).reshape(-1)
    as_is, back = flat @ usual, flat @ turned
    better = back > as_is
    within, without = float(better[inside].mean()), float(better[~inside].mean())
    if within < INSIDE or without > OUTSIDE:
        return None
    level, same = float(np.median(as_is[~inside])), float(usual @ turned)
    if same > SYMMETRIC or abs(float(np.median(as_is[inside])) - same * level) > AS_REVERSED:
        return None
    if level < PROFILE or float(np.median(back[inside])) < BACK * level:
        return None
    p = share_tail(int(better[inside].sum()), int(inside.sum()), max(0.5, without)) * tries
    return (float(np.median(as_is[inside])), float(np.median(back[inside])), level) if p < LEVEL else None


def _as_the_others(means: Array, part: int, axis: int, shape: tuple[int, ...]) -> bool:
    """Whether all other parts have one profile, and this one's reversed is as near to it as theirs are."""
    near = []
    for at in range(len(means)):
        mine = np.flip(means[at].reshape(shape), axis - 1).reshape(-1) if at == part else means[at]
        rest = np.delete(means, [at, part], axis=0).mean(axis=0)
        near.append(float(mine @ rest) / max(1e-12, float(np.linalg.norm(mine) * np.linalg.norm(rest))))
    return min(near) >= ONE_PROFILE and near[part] >= min(np.delete(near, part)) - SLACK


def _finding(data: DataSet, group: Sequence[Shard], name: str, cut: Cut, part: int, axis: int, axes: int,
             found: tuple[float, float, float]) -> Finding:
    at = next(i for i, m in enumerate(cut.member) if (m == part).any())
    declared = told_by_another_field(group, cut, part, [name])
    which = f"axis {axis} of {name}" if axes > 2 else name
    said = (
        f"{which} of {cut.told(part)} runs the other way than in the {len(cut.names) - 1} other parts: its rows have a "
        f"correlation of {found[0]:.2f} with the mean of the others as they are and of {found[1]:.2f} reversed; the "
        f"others' own is {found[2]:.2f}"
    )
    said += f"; {declared}" if declared else ""
    return RULE.finding(
        said,
        place(group[at], name),
        group[at].name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None if cut.origin else Severity.MEDIUM,
        measured={
            "field": name, "by": cut.by or "file", "part": cut.names[part], "axis": axis, "here": round(found[0], 3),
            "reversed": round(found[1], 3), "usual": round(found[2], 3), "rows": percent(float(np.mean(
                np.concatenate(cut.member) == part))), "kind": "declared" if declared else "reversed",
            "shard": short(group[at]) if cut.by == "" else "",
        },
    )
