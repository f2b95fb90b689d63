"""One shard has another scale or another level than its siblings, in a whole field, one feature or one channel of it.

Pixels that were divided by 255 in all files but one, metres among kilometres, a file normalised twice. The shard is
compared with its siblings by the spread of the siblings themselves: where they come from sources that differ, they
differ much, and none is named. Between training and validation data the same is asked with a larger bound, since they
are one each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.declared import tells_shard
from traindx_tools.on_data.degrees import degrees_apart
from traindx_tools.on_data.entities import are_entities, unit_apart
from traindx_tools.on_data.places import number, of, place, short
from traindx_tools.on_data.robust import standing_out
from traindx_tools.on_data.roles import is_row_id, is_time
from traindx_tools.on_data.rows_beyond import are_sums, stretch_beyond
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.slices import Part, moments, parts_of, values_at
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.undone import obeys_once_undone
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RATIO = 5.0
SPLIT_RATIO = 8.0
STRETCHES = 200
"""Stretches of a training file that are looked at."""
SHIFT = 1.5
FEWEST = 30
UNIT_RATIO = 1.5
UNIT_WITHIN = 0.03
UNITS = {
    1.8: "1.8 is degrees Celsius to Fahrenheit",
    1.609344: "1.609 is miles to kilometres",
    2.204623: "2.205 is kilograms to pounds",
    2.54: "2.54 is inches to centimetres",
    3.28084: "3.281 is metres to feet",
    3.6: "3.6 is m/s to km/h",
}
"""Ratios of units that are below `RATIO`."""

BY_RELATION = 0.2
"""Chance of the scale alone, over all comparisons, that is enough where the shard obeys a relation of its siblings once
the factor is undone: of three files the spread says little, and the relation much."""

RULE = Rule(
    id="D104",
    name="other-scale",
    title="A shard has another scale than its siblings",
    severity=Severity.HIGH,
    sees="mean and standard deviation of each field, feature of a table and channel of an array, by shard",
    matters="A model fits the scale of most shards; the other one gives it inputs of no use, and large gradients.",
    alike=("Shards of several sources differ all from each other.", "A small last shard scatters more.",
           "A field or a manifest that tells the shard from its siblings, as a gain does: a remark.",
           "Held-out data that are a short stretch of a series which wanders: those of the training data vary so.",
           "Files that are one entity each, as stocks are, with levels of their own: a remark, but for units."),
    confirm=("Divide the shard by the factor in a copy and train again.", "Look how the file was made."),
    thresholds={
        "ratio": Threshold(RATIO, "times", "of standard deviations: less is common between sources"),
        "split_ratio": Threshold(SPLIT_RATIO, "times", "between training and held-out data, which are one each"),
        "shift": Threshold(SHIFT, "standard deviations", "of the level: less is common between sources"),
        "unit_ratio": Threshold(UNIT_RATIO, "times", "where it is that of two units, within 3 %: medium"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards, fields and features"),
    },
)


_Told = tuple[Part | None, float, float, float, float]
"""Part (None: the whole field), ratio of spreads, shift of level, chance, distance in units of the spread."""


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard and field, and for each field that differs between splits."""
    for data in view.sets:
        labels = data.labels
        for name in data.fields:
            groups = [[s for s in g if _comparable(s, name)] for g in data.siblings(name)]
            if name in labels or not any(groups) or is_time(name):
                continue
            named = False
            for group in groups:
                for finding in _among(view, data, group, name):
                    named = True
                    yield finding
            if not named:
                yield from _between_splits([g for g in groups if g], name)


def _comparable(shard: Shard, name: str) -> bool:
    column = shard.columns[name]
    return (
        column.kind == "number" and shard.rows >= FEWEST and column.values.dtype.kind in "iuf" and not is_row_id(column)
    )


def _moments(group: Sequence[Shard], name: str) -> tuple[Array, Array]:
    """Means and standard deviations of the whole field in the shards."""
    seen = [s.summaries[name] for s in group]
    return np.array([s.mean for s in seen]), np.array([s.std for s in seen])


def _by_part(group: Sequence[Shard], name: str, parts: Sequence[Part]) -> Iterator[tuple[Part | None, Array, Array]]:
    """Of the whole field and of each part: means and standard deviations of the shards."""
    yield (None, *_moments(group, name))
    for axis in sorted({p.axis for p in parts}):
        told = [moments(s, name, axis) for s in group]
        for part in (p for p in parts if p.axis == axis):
            yield part, np.array([m[part.index] for m, _ in told]), np.array([s[part.index] for _, s in told])


def _among(view: View, data: DataSet, group: Sequence[Shard], name: str) -> Iterator[Finding]:
    """Shards that stand out among the siblings of one split."""
    if len(group) < 3:
        return
    parts = parts_of(group, name)
    found: dict[int, list[_Told]] = {}
    comparisons = 2 * len(group) * (1 + len(parts)) * max(1, len(data.fields))
    noise = 1.0 / np.sqrt([s.rows for s in group])
    for part, mean, std in _by_part(group, name, parts):
        if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()):
            continue
        out = standing_out(np.log(std), 0.05 + noise, comparisons, math.log(UNIT_RATIO))
        near = standing_out(np.log(std), 0.05 + noise, comparisons * LEVEL / BY_RELATION, math.log(UNIT_RATIO))
        scale = {o.index: o for o in near if part is None and not out and _obeys(data, group, o.index, name, o.delta)}
        scale |= {o.index: o for o in out if _tells(math.exp(o.delta))}
        typical = float(np.median(std))
        level = {o.index: o for o in standing_out(mean / typical, 0.05 + noise, comparisons, SHIFT)}
        for i in (i for i in range(len(group)) if i not in scale and i not in level and degrees_apart(mean, std, i)):
            if _alone(data, group, i, name, part, mean, 1.8):
                ratio = float(std[i] / np.median(np.delete(std, i)))
                shift = float((mean[i] - np.median(mean)) / typical)
                found.setdefault(i, []).append((part, ratio if _units(ratio) else 1.0, shift, 0.0, abs(shift)))
        for i in {*scale, *level}:
            ratio = math.exp(scale[i].delta) if i in scale else 1.0
            if i in scale and not _holds(group, i, name, part, ratio):
                continue
            if max(ratio, 1.0 / ratio) < RATIO and i in scale and not _alone(data, group, i, name, part, mean, ratio):
                continue
            worst = min((o[i] for o in (scale, level) if i in o), key=lambda o: o.p)
            found.setdefault(i, []).append((part, ratio, level[i].delta if i in level else 0.0, worst.p, worst.t))
    for i, told in found.items():
        declared = tells_shard(view, group, i, name) or _of_its_own(group, i, name, told)
        yield _finding(group, i, name, told, parts, declared)


def _of_its_own(group: Sequence[Shard], i: int, name: str, told: list[_Told]) -> str:
    """Why a file that is an entity may have another scale; "" where the ratio is that of two units."""
    if not are_entities(group):
        return ""
    mean, std = _moments(group, name)
    found = unit_apart(np.abs(mean), i), unit_apart(std, i, 2.0 / math.sqrt(group[i].rows))
    if any(t[1] != 1.0 for t in told) and (found[0] or (found[1] and max(found[1][0], 1.0 / found[1][0]) >= 10.0)):
        return ""
    return "each file has a level of its own, as stocks, sensors and customers have"


def _alone(
    data: DataSet, group: Sequence[Shard], i: int, name: str, part: Part | None, mean: Array, ratio: float
) -> bool:
    """Whether a ratio of units is that of one part alone and the level follows: of a harder source neither is so.

    Degrees are moved as well, so their level may be any.
    """
    usual = float(np.median(mean))
    spread = float(np.median(_moments(group, name)[1]))
    follows = abs(usual) < 0.2 * spread or abs(mean[i] / usual / ratio - 1.0) < 0.1
    if not follows and _units(ratio) != UNITS[1.8]:
        return False
    fields = [n for n in data.fields if n != name and all(n in s.columns and _comparable(s, n) for s in group)]
    sides = [_moments(group, n)[1] for n in fields]
    if part is not None:
        along = np.stack([moments(s, name, part.axis)[1] for s in group], axis=1)
        sides += [row for k, row in enumerate(along) if k != part.index]
    with np.errstate(all="ignore"):
        out = [abs(math.log(s[i] / np.median(s))) for s in sides if np.isfinite(s).all() and (s > 0).all()]
    return bool(out) and float(np.quantile(out, 0.75)) < 0.15


def _obeys(data: DataSet, group: Sequence[Shard], index: int, name: str, delta: float) -> bool:
    """Whether the shard's field stands to another one as in its siblings, once the factor is undone."""
    others = [n for n in data.fields if n != name and all(n in s.columns and _comparable(s, n) for s in group)]
    return bool(obeys_once_undone(group, index, name, math.exp(delta), others))


def _tells(ratio: float) -> bool:
    """Whether a ratio is large, or that of two units."""
    return max(ratio, 1.0 / ratio) >= RATIO or _units(ratio) is not None


def _units(ratio: float) -> str | None:
    """The units whose ratio it is, where that is so within the tolerance."""
    size = max(ratio, 1.0 / ratio)
    near = [(abs(math.log(size / factor)), told) for factor, told in UNITS.items()]
    return min(near)[1] if min(near)[0] <= UNIT_WITHIN else None


def _telling(told: list[_Told], parts: Sequence[Part]) -> _Told:
    """The part that is farthest out on the axis along which the fewest stand out; else the whole field."""
    whole = next((t for t in told if t[0] is None), None)
    sizes = Counter(p.axis for p in parts)
    out = Counter(t[0].axis for t in told if t[0] is not None)
    few = [a for a, n in out.items() if n <= sizes[a] / 2]
    if not few and whole is not None:
        return whole
    axis = min(few or out, key=lambda a: out[a] / sizes[a])
    along = [t for t in told if t[0] is not None and t[0].axis == axis]
    return max(along, key=lambda t: (abs(math.log(t[1])), abs(t[2])))


def _middle(shard: Shard, name: str, part: Part | None) -> float:
    """The spread of the middle half of the values, which a few extremes cannot move; NaN where too few tell it.

    Of a field that is mostly one value, as counts mostly are 0, the typical distance of the others to it.
    """
    values = shard.summaries[name].sample if part is None else values_at(shard, name, part)
    values = values[np.isfinite(values)]
    if not len(values):
        return math.nan
    low, centre, high = np.percentile(values, (25, 50, 75))
    if high > low:
        return float(high - low)
    others = np.abs(values[values != centre] - centre)
    return float(np.median(others)) if len(others) >= FEWEST else math.nan


def _holds(group: Sequence[Shard], i: int, name: str, part: Part | None, ratio: float) -> bool:
    """Whether the middle of the shard's values has another spread too, and not a few extremes alone."""
    middles = [_middle(s, name, part) for s in group]
    typical = float(np.median(middles))
    if not (typical > 0.0 and middles[i] > 0.0):
        return False
    return abs(math.log(middles[i] / typical)) >= 0.5 * abs(math.log(ratio))


def _finding(
    group: Sequence[Shard], i: int, name: str, told: list[_Told], parts: Sequence[Part], declared: str
) -> Finding:
    part, ratio, shift, p, z = _telling(told, parts)
    if part is None:
        mean, std = _moments(group, name)
    else:
        seen = [moments(s, name, part.axis) for s in group]
        mean, std = (np.array([s[k][part.index] for s in seen]) for k in (0, 1))
    what = of(name, group[i]) if part is None else f"{part.told} of {of(name, group[i])}"
    how = (
        f"{number(ratio)} times the spread of its siblings (standard deviation {number(std[i])} against "
        f"{number(float(np.median(std)))})"
        if ratio != 1.0
        else f"a level {number(abs(shift))} standard deviations {'above' if shift > 0 else 'below'} its siblings "
        f"(mean {number(mean[i])} against {number(float(np.median(mean)))})"
    )
    large, units = max(ratio, 1 / ratio) >= RATIO, _units(ratio)
    stretch = stretch_beyond(group, i, name) if part is None else None
    within = f"; rows {stretch.start}..{stretch.end - 1} alone lie beyond all values of the others" if stretch else ""
    if part is None and not within and are_sums(group, i, name):
        within = "; its values are running sums: their steps are distributed as the values of the others"
    return RULE.finding(
        f"{what} has {how}; {len(group)} shards were compared{within or (f'; {units}' if units else '')}"
        f"{f'; {declared}' if declared else ''}",
        place(group[i], name),
        group[i].name,
        bearing=Bearing.CAUSE if large or ratio == 1.0 else Bearing.SIGN,
        severity=Severity.INFO if declared else Severity.HIGH if large else Severity.MEDIUM,
        measured={
            "field": name,
            "feature": part.index if part is not None else None,
            "axis": part.axis + 1 if part is not None else None,
            "ratio": ratio,
            "shift": shift,
            "p": p,
            "z": z,
            "kind": "scale" if ratio != 1.0 else "level",
            "rows": (stretch.start, stretch.end - 1) if stretch is not None else (),
            "shard": short(group[i]),
        },
    )


def _medians(
    group: Sequence[Shard], name: str, parts: Sequence[Part]
) -> Iterator[tuple[Part | None, tuple[float, float]]]:
    for part, mean, std in _by_part(group, name, parts):
        yield part, (float(np.median(mean)), float(np.median(std)))


_Side = tuple[Part | None, tuple[float, float]]


def _other_split(train: _Side, held: _Side) -> tuple[Part | None, float, float, float, float, float] | None:
    """A part with the ratio of its spreads, and mean and spread of both, where the ratio is large."""
    (part, (m0, s0)), (_, (m1, s1)) = train, held
    if not (s0 > 0 and s1 > 0 and math.isfinite(s0) and math.isfinite(s1)):
        return None
    ratio = s1 / s0
    return None if SPLIT_RATIO > ratio > 1 / SPLIT_RATIO else (part, ratio, m0, s0, m1, s1)


def _stretches_vary(train: Sequence[Shard], rows: int, name: str, part: Part | None, spread: float) -> bool:
    """Whether stretches of the training rows as long as the held-out data have as small a spread.

    Of a series that wanders, cut in time, the shorter part has less; of rows in a random order no stretch has.
    """
    found = []
    for shard in train:
        values = shard.columns[name].values
        values = values if part is None else np.take(values, part.index, axis=part.axis + 1)
        starts = range(0, shard.rows - rows + 1, max(1, rows // 2, shard.rows // STRETCHES))
        found += [float(np.nanstd(np.asarray(values[a : a + rows], np.float64))) for a in starts]
    return len(found) >= 4 and min(found) <= 2.0 * spread


def _spread_of_all(group: Sequence[Shard], name: str, part: Part | None) -> float:
    """The spread over all shards together, where most of them are alike: of shards in an order each has little."""
    if len(group) < 3:
        return 0.0
    mean, std = next((m, s) for p, m, s in _by_part(group, name, () if part is None else (part,)) if p == part)
    apart = 1.4826 * float(np.median(np.abs(mean - np.median(mean))))
    return math.hypot(float(np.median(std)), apart)


def _between_splits(groups: Sequence[Sequence[Shard]], name: str) -> Iterator[Finding]:
    """Held-out data of another scale than training data."""
    train = next((g for g in groups if g[0].split == "train"), None)
    for group in groups:
        if train is None or group is train or not group[0].split:
            continue
        parts = parts_of([*train, *group], name)
        sides = (dict(_medians(g, name, parts)) for g in (train, group))
        told = [t for t in map(_other_split, *(d.items() for d in sides)) if t is not None]
        if not told:
            continue
        part, ratio, *_ = _telling([(p, r, 0.0, 0.0, 0.0) for p, r, *_ in told], parts)
        m0, s0, m1, s1 = next(t[2:] for t in told if t[0] == part)
        if s1 < s0 and _stretches_vary(train, sum(s.rows for s in group), name, part, s1):
            continue
        if s1 > s0 and s1 < SPLIT_RATIO * _spread_of_all(train, name, part):
            continue
        what = of(name, group[0]) if part is None else f"{part.told} of {of(name, group[0])}"
        yield RULE.finding(
            f"{what} has {number(ratio)} times the spread of the training data (standard deviation "
            f"{number(s1)} against {number(s0)}, mean {number(m1)} against {number(m0)})",
            place(group[0], name),
            group[0].name,
            bearing=Bearing.CAUSE,
            title="Held-out data have another scale than training data",
            measured={
                "field": name,
                "feature": part.index if part is not None else None,
                "axis": part.axis + 1 if part is not None else None,
                "ratio": ratio,
                "shift": m1 - m0,
                "kind": "split",
                "shard": short(group[0]),
            },
        )
