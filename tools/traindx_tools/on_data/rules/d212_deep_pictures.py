"""Deep pictures of one origin are a known factor beside those of the others: depth in other units, other bits.

Depth is stored in whole numbers of 16 bits, in millimetres, in tenths of them, in metres times 1,000 or 5,000; cameras
of 10, 12 and 14 bits fill the lower or the upper bits. Pictures of one camera, room or folder whose levels are those of
all others times such a factor, and meet none of them as they are, are in another unit. Where all their values are
multiples of the factor, and those of the others are not, they were multiplied by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.origins import groups_of
from traindx_tools.on_data.places import listed, number, place, rows, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import distance
from traindx_tools.on_data.units_by_group import says_unit
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FACTORS = (4.0, 5.0, 8.0, 10.0, 16.0, 64.0, 100.0, 256.0, 257.0, 1000.0, 10_000.0)
FEWEST = 8
WITHIN, NARROW = 0.06, 0.7
APART, LEFT = 0.95, 0.2
WIDTH = 0.25
MOST_KINDS = 200

RULE = Rule(
    id="D212",
    name="deep-pictures",
    title="Deep pictures of one origin are in another unit",
    severity=Severity.MEDIUM,
    sees="median and quartiles of the values above 0 of each picture of more than 8 bits, and their greatest common "
         "divisor, by words of their names, folder and manifest",
    matters="Depth of these pictures is ten or a thousand times as far: a loss in metres is made by them alone.",
    alike=("A scene that is farther away, a brighter lamp: no factor of units makes the levels alike.",
           "A column or a file that tells the scale of each camera: a remark."),
    confirm=("Print the median of one named picture and of another.",
             "Ask how the pictures of that origin were saved."),
    thresholds={
        "fewest": Threshold(FEWEST, "pictures", "of the origin, and of each other one"),
        "within": Threshold(WITHIN, "of the factor (logarithm)", "that the ratio of the middles is off, beyond chance"),
        "narrow": Threshold(NARROW, "logarithm", "range of the middles of all other origins, at most"),
        "apart": Threshold(APART, "distance of distribution functions", "as they are, at least"),
        "width": Threshold(WIDTH, "of the others' ratio of quartiles (logarithm)", "that it is off at most"),
        "left": Threshold(LEFT, "distance of distribution functions", "after the division, at most beyond chance"),
    },
)


@dataclass(frozen=True, eq=False)
class _Odd:
    """Pictures of one origin, and by which factor they are larger than the others."""

    by: str
    name: str
    inside: Array
    factor: float
    multiples: bool
    """Whether all of their values are multiples of the factor, and hardly any picture of the others is so."""


def check(view: View) -> Iterator[Finding]:
    """A finding for the surest origin of each folder of pictures."""
    for data in view.sets:
        for shard in (s for s in data.shards if s.deep is not None and len(s.deep) == len(s.row_names)):
            found = [o for by, values in groups_of(shard.row_names, view) for o in _origins(shard, by, values)]
            if found:
                best = max(found, key=lambda o: (o.multiples, int(o.inside.sum())))
                yield _finding(view, shard, best)


def _origins(shard: Shard, by: str, values: Array) -> Iterator[_Odd]:
    assert shard.deep is not None
    levels = np.log(shard.deep[:, 0])
    known = np.isfinite(levels)
    kinds, member = np.unique(values, return_inverse=True)
    member = member.reshape(-1)
    counts = np.bincount(member[known], minlength=len(kinds))
    if not 3 <= int((counts >= FEWEST).sum()) <= MOST_KINDS or counts[counts >= FEWEST].sum() < 0.9 * known.sum():
        return
    large = np.flatnonzero(counts >= FEWEST)
    middles = np.array([float(np.median(levels[known & (member == k)])) for k in large])
    for at, kind in enumerate(large):
        others = np.delete(middles, at)
        away = middles[at] - float(np.median(others))
        if float(np.ptp(others)) > NARROW or abs(away) <= NARROW + float(np.ptp(others)):
            continue
        inside = known & (member == kind)
        factor = _factor(levels[inside], levels[known & ~inside])
        widths = shard.deep[:, 1]
        if factor is not None and _alike(widths[inside], widths[known & ~inside]):
            yield _Odd(by, str(kinds[kind]), inside, factor, _multiples(shard.deep[:, 2], inside, known, factor))


def _alike(mine: Array, others: Array) -> bool:
    """Whether values within the pictures spread alike, which a factor does not change."""
    middle, other = float(np.median(mine)), float(np.median(others))
    noise = 1.36 * math.sqrt(1 / len(mine) + 1 / len(others))
    usual = float(np.subtract(*np.quantile(others, (0.75, 0.25))))
    return abs(middle - other) <= WIDTH * other + usual * noise


def _factor(mine: Array, others: Array) -> float | None:
    """The factor of units that makes both alike, below 1 where the odd ones are smaller."""
    away = float(np.median(mine) - np.median(others))
    size = min(FACTORS, key=lambda f: abs(abs(away) - math.log(f)))
    noise = 1.36 * math.sqrt(1 / len(mine) + 1 / len(others))
    spread = float(np.subtract(*np.quantile(others, (0.75, 0.25))))
    moved = math.copysign(math.log(size), away)
    if abs(away - moved) > WITHIN + spread * noise or distance(np.sort(mine), np.sort(others)) < APART:
        return None
    return math.exp(moved) if distance(np.sort(mine - moved), np.sort(others)) <= LEFT + noise else None


def _multiples(steps: Array, inside: Array, known: Array, factor: float) -> bool:
    """Whether the larger side is made of multiples of the factor, and the other is not."""
    size = round(max(factor, 1 / factor))
    large, small = (inside, known & ~inside) if factor > 1 else (known & ~inside, inside)
    divided = (steps > 0) & (np.mod(steps, size) == 0)
    return bool(divided[large].mean() >= 0.9 and divided[small].mean() <= 0.1)


def _declared(view: View, shard: Shard, found: _Odd) -> str:
    """A column of a manifest, or a file of numbers by name, that tells these pictures from the others."""
    for by, values in groups_of(shard.row_names, view):
        own = np.unique(values[found.inside])
        if says_unit(by.partition(" in ")[0]) and len(own) == 1 and not (values[~found.inside] == own[0]).any():
            return f"{by} says so"
    for told in view.hints.by_name:
        rest = [v for n, v in told.values.items() if n != found.name]
        if found.name in told.values and rest and told.values[found.name] not in rest:
            return f"{told.name} of {told.file} says so"
    return ""


def _finding(view: View, shard: Shard, found: _Odd) -> Finding:
    assert shard.deep is not None
    declared = _declared(view, shard, found)
    rest = np.isfinite(shard.deep[:, 0]) & ~found.inside
    times = found.factor if found.factor > 1 else 1 / found.factor
    middles = [float(np.median(shard.deep[m, 0])) for m in (found.inside, rest)]
    which = np.flatnonzero(found.inside)
    why = (f"; all values of the larger ones are multiples of {times:g}, which those of the others are not"
           if found.multiples else "")
    return RULE.finding(
        f"the {len(which):,} deep pictures with {listed([found.name])} as {found.by} of {short(shard)} have values "
        f"{times:g} times as {'large' if found.factor > 1 else 'small'} as all others (median {number(middles[0])} "
        f"against {number(middles[1])}), and are like them after that is undone{why}: {rows(shard, which)}"
        + (f"; {declared}" if declared else ""),
        place(shard),
        shard.name,
        bearing=Bearing.SIGN if not found.multiples else Bearing.CAUSE,
        severity=Severity.INFO if declared else Severity.HIGH if found.multiples else None,
        measured={"field": "values", "by": found.by, "part": found.name, "factor": found.factor,
                  "multiples": found.multiples, "count": len(which), "rows": tuple(int(i) for i in which[:20]),
                  "kind": "declared" if declared else "unit", "shard": short(shard)},
    )
