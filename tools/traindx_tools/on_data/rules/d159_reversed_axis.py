"""In the rows of one group or file an axis of a field stands otherwise: reversed, moved, in another order, exchanged.

Spectra over falling wavelengths, profiles from the ground up, joints with y and z exchanged, a spectrometer that begins
five channels later: the mean of all other rows is the profile that each row is laid against, as it is and after each of
a list of operations on axes (`axis_operations.py`). Pictures of files are told by D143.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.axis_operations import Operation, operations, reversals
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, cuts_of, told_by_another_field
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.row_statistics import is_tokens
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.slices import is_padded
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHORTEST, CELLS, FINE = 8, 32, 512
"""Places of the longest axis at least; cells of a long axis beside another one, and of one alone."""
MOST_ROWS = 6000
MOST_FIELDS = 8
FEWEST = 20
INSIDE, OUTSIDE = 0.9, 0.1
PROFILE, BACK = 0.5, 0.85
SYMMETRIC, AS_REVERSED = 0.75, 0.2
"""Correlation of a profile with itself reversed, above which it is the same from both ends; and how far from it the
rows of the part are as they are, which is what reversed rows of the others would have."""
ONE_PROFILE, SLACK = 0.8, 0.1
LEFT, AS_FAR, STANDS_OUT, ALL_OF_IT = 0.5, 1.5, 4.0, 0.02
"""Of what rows of the part lack to the profile, that another operation may leave; times what the others lack, that its
rows and its mean may lack once it is undone; times what the mean of any other part lacks, that its own does before; and
of that, what may be left in any case: means of few rows are off by chance."""
TRIED = 6
COPIES, SAMPLED = 0.2, 400
"""Share of the rows that are rows of the others after the operation: augmented on purpose."""

RULE = Rule(
    id="D159",
    name="reversed-axis",
    title="An axis of a field stands otherwise in one part of the rows",
    severity=Severity.HIGH,
    sees="the correlation of each row with the mean of all other parts, as it is and after each of many operations on "
         "its axes: reversed, moved on, in blocks, sorted as text, places exchanged, other signs",
    matters="The same place means another wavelength, height, joint or channel in these rows.",
    alike=("Rows without a profile in common, such as signals and shuffled features: nothing is said.",
           "A profile that an operation hardly changes: both ways fit, and nothing is said.",
           "Parts that differ by nature: no operation makes them like the others.",
           "Copies that were made so on purpose: rows that are rows of the others, once it is undone."),
    confirm=("Plot the mean of the part beside that of the others, as it is and with the operation undone.",),
    thresholds={
        "profile": Threshold(PROFILE, "median correlation", "of the other rows with their mean"),
        "back": Threshold(BACK, "of it", "that the rows of the part have once it is undone"),
        "one": Threshold(ONE_PROFILE, "correlation", "of the mean of each part with that of the others, at least"),
        "symmetric": Threshold(SYMMETRIC, "correlation", "of a profile with itself reversed, above which none is told"),
        "left": Threshold(LEFT, "of what is lacking to the profile", "that another operation leaves, at most"),
        "stands_out": Threshold(STANDS_OUT, "times what any other part lacks", "that the part lacks before it"),
        "inside": Threshold(INSIDE, "share of the rows", "of the part that fit better so"),
        "outside": Threshold(OUTSIDE, "share of the rows", "of all others that do, at most"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts, fields and operations"),
    },
)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a field: float32 (rows, cells) about 0 with norm 1, the shape of their cells, the rows that were taken,
    and the operations that are tried."""

    flat: Array
    shape: tuple[int, ...]
    some: list[Array]
    plain: tuple[Operation, ...]
    others: tuple[Operation, ...]


def check(view: View) -> Iterator[Finding]:
    """A finding for each field and part."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        cuts = list(cuts_of(group, data.labels)) if group else []
        for name in _fields(group)[:MOST_FIELDS] if cuts else []:
            yield from _of_field(group, name, cuts, view.comparisons)


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


def _rows(group: Sequence[Shard], name: str) -> _Rows:
    share = max(FEWEST, MOST_ROWS // len(group))
    some = [np.unique(np.linspace(0, s.rows - 1, min(s.rows, share)).astype(np.int64)) for s in group]
    given = group[0].columns[name].row_shape
    long = [n for n in given if n > CELLS]
    most = FINE if len(long) == 1 and int(np.prod(given)) <= 4 * FINE else CELLS
    made: list[Array] = []
    for shard, rows in zip(group, some, strict=True):
        x: Array = np.nan_to_num(np.asarray(shard.columns[name].values[rows], np.float32), posinf=0.0, neginf=0.0)
        for axis in range(1, x.ndim):
            if x.shape[axis] > most:
                edges = np.linspace(0, x.shape[axis], most + 1).astype(np.int64)
                along = [1] * x.ndim
                along[axis] = most
                x = np.add.reduceat(x, edges[:-1], axis=axis) / np.diff(edges).reshape(along)
        made.append(x)
    every: Array = np.concatenate(made)
    axes = tuple(range(1, every.ndim))
    signed = bool(0.02 < float((every < 0).mean()) < 0.98)
    every = every - every.mean(axis=axes, keepdims=True)
    size = np.sqrt((every**2).sum(axis=axes, keepdims=True))
    shape = every.shape[1:]
    picture = sum(n >= 12 for n in shape) == 2 and all(n <= 4 or n >= 12 for n in shape)
    whole = [a for a, n in enumerate(given) if n <= most]
    return _Rows(np.asarray(every / np.maximum(size, 1e-12), np.float32).reshape(len(every), -1), shape, some,
                 tuple(reversals(shape)), () if picture else tuple(operations(shape, whole, signed)))


def _of_field(group: Sequence[Shard], name: str, cuts: Sequence[Cut], comparisons: int) -> Iterator[Finding]:
    x = _rows(group, name)
    flat = x.flat
    total = flat.sum(axis=0, dtype=np.float64)
    tries = comparisons * (len(x.plain) + len(x.others)) * sum(len(c.names) for c in cuts)
    told: set[int] = set()
    for cut in cuts:
        if cut.by == name:
            continue
        member = np.concatenate([m[r] for m, r in zip(cut.member, x.some, strict=True)])
        means = np.stack([flat[member == p].mean(axis=0) if (member == p).any() else np.zeros(flat.shape[1])
                          for p in range(len(cut.names))])
        for part in range(len(cut.names)):
            inside = member == part
            if not FEWEST <= int(inside.sum()) <= len(flat) // 2 or int(np.argmax(inside)) in told:
                continue
            mean = total - flat[inside].sum(axis=0, dtype=np.float64)
            profile = (mean / max(1e-12, float(np.linalg.norm(mean)))).astype(np.float32)
            beside = np.delete(means, part, axis=0) if len(means) > 2 else _thirds(flat[~inside])
            found = _done(x, profile, means[part], beside, inside, tries)
            if found is not None:
                told.add(int(np.argmax(inside)))
                yield _finding(group, name, cut, part, len(x.shape) + 1, *found)


def _thirds(rows: Array) -> Array:
    """Of two parts the larger one in three stretches, which are as far from each other as parts are."""
    return np.stack([p.mean(axis=0) for p in np.array_split(rows, 3)])


_Seen = tuple[float, float, float]
"""Median correlation of the part as it is and undone, and of the others."""


def _done(x: _Rows, profile: Array, mean: Array, beside: Array, inside: Array, tries: float
          ) -> tuple[Operation, _Seen] | None:
    """The operation that makes the part like the others: a reversal, else the one of all that leaves the least."""
    as_is = x.flat @ profile
    for one in x.plain:
        seen = _fits(x, one, profile, as_is, inside, tries)
        if seen is not None and _as_the_others(one, mean, beside):
            return one, seen
    level = float(np.median(as_is[~inside]))
    if not x.others or level < PROFILE or float(np.median(as_is[inside])) >= level:
        return None
    near = sorted(x.others, key=lambda o: -float(mean @ o.done(profile)))[:TRIED]
    found = [(o, seen) for o in near if (seen := _fits(x, o, profile, as_is, inside, tries)) is not None
             and _as_the_others(o, mean, beside) and not _copied(x.flat, o, inside)]
    return max(found, key=lambda f: f[1][1], default=None)


def _fits(x: _Rows, one: Operation, profile: Array, as_is: Array, inside: Array, tries: float) -> _Seen | None:
    """What rows have as they are and with the operation undone; None where it is not what was done."""
    other = one.done(profile)
    back = x.flat @ other
    better = back > as_is
    within, without = float(better[inside].mean()), float(better[~inside].mean())
    if within < INSIDE or without > OUTSIDE:
        return None
    level, same = float(np.median(as_is[~inside])), float(profile @ other)
    here, there = float(np.median(as_is[inside])), float(np.median(back[inside]))
    if level < PROFILE or there < BACK * level or abs(here - same * level) > AS_REVERSED:
        return None
    if one.kind == "reversed":
        if same > SYMMETRIC:
            return None
    elif 1.0 - there > min(LEFT * (1.0 - here), AS_FAR * (1.0 - level)):
        return None
    p = share_tail(int(better[inside].sum()), int(inside.sum()), max(0.5, without)) * tries
    return (here, there, level) if p < LEVEL else None


def _as_the_others(one: Operation, mean: Array, beside: Array) -> bool:
    """Whether all other parts have one profile, and this one's undone is as near to it as theirs are.

    Of many operations some brings any part a little nearer: there the part has to be far from all others before.
    """
    near = [_alike(beside[at], np.delete(beside, at, axis=0)) for at in range(len(beside))]
    here, there = _alike(mean, beside), _alike(one.undone(mean), beside)
    if min(*near, there) < ONE_PROFILE:
        return False
    if one.kind == "reversed":
        return there >= min(near) - SLACK
    lacking = 1.0 - min(near)
    return 1.0 - here >= STANDS_OUT * lacking and 1.0 - there <= max(AS_FAR * lacking, ALL_OF_IT * (1.0 - here))


def _alike(mean: Array, others: Array) -> float:
    rest = others.mean(axis=0)
    return float(mean @ rest) / max(1e-12, float(np.linalg.norm(mean) * np.linalg.norm(rest)))


def _copied(flat: Array, one: Operation, inside: Array) -> bool:
    """Whether rows of the part are rows of the others, once it is undone."""
    rows = np.flatnonzero(inside)[:: max(1, int(inside.sum()) // SAMPLED)]
    mine = np.round(one.undone(flat[rows]), 4)
    others = {r.tobytes() for r in np.round(flat[~inside], 4) + np.float32(0)}
    return float(np.mean([(r + np.float32(0)).tobytes() in others for r in mine])) >= COPIES


def _finding(group: Sequence[Shard], name: str, cut: Cut, part: int, axes: int, one: Operation, found: _Seen
             ) -> Finding:
    at = next(i for i, m in enumerate(cut.member) if (m == part).any())
    declared = told_by_another_field(group, cut, part, [name])
    which = f"axis {one.axis} of {name}" if axes > 2 else name
    others = f"the {len(cut.names) - 1} other parts" if len(cut.names) > 2 else "the other part"
    how = (f"{which} of {cut.told(part)} runs the other way than in {others}" if one.kind == "reversed" else
           f"{name} of {cut.told(part)} stands otherwise than in {others}: {one.told}")
    undone = "reversed" if one.kind == "reversed" else "with that undone"
    said = (
        f"{how}: its rows have a correlation of {found[0]:.3f} with the mean of the others as they are and of "
        f"{found[1]:.3f} {undone}; the others' own is {found[2]:.3f}"
    )
    said += f"; {declared}" if declared else ""
    return RULE.finding(
        said,
        place(group[at], name),
        group[at].name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None if cut.origin else Severity.MEDIUM,
        measured={
            "field": name, "by": cut.by or "file", "part": cut.names[part], "axis": one.axis,
            "here": round(found[0], 3), "reversed": round(found[1], 3), "usual": round(found[2], 3),
            "rows": percent(float(np.mean(np.concatenate(cut.member) == part))),
            "kind": "declared" if declared else one.kind, "places": one.by,
            "shard": short(group[at]) if cut.by == "" else "",
        },
    )
