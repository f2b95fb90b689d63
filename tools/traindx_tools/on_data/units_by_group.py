"""Numbers of one field whose unit differs between rows: seconds and milliseconds, minutes and hours, g and kg.

Of moments since 1970 the unit is told number by number. Of any other field it is told between the groups of a field of
few kinds: two sides that do not meet as they are, and are distributed alike once one is divided by the factor.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import ROWS, called_origin
from traindx_tools.on_data.places import short
from traindx_tools.on_data.roles import is_target, is_time, keys, label_name
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import distance

EPOCH = (9.4e8, 2.21e9)
"""Seconds since 1970, from 2000 to 2040."""
UNITS = {1.0: "seconds", 1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}
FACTORS = {60.0: "minutes and hours, or seconds and minutes", 1e3: "thousandths (ms and s, g and kg, m and km)",
           3600.0: "seconds and hours", 1e6: "millionths", 1e9: "milliardths"}
"""Factors that no two groups differ by as a whole without a reason."""
COVERED = 0.98
"""Share of the numbers whose unit is told; and of the rows of one unit that a group must have."""
FEWEST, SHARE = 20, 0.002
"""Rows of a unit, and their share: fewer are single wrong entries."""
WITHIN = 0.03
APART, LEFT = 0.95, 0.12
"""Distance of the two sides as they are, at least, and once one is divided by the factor, at most beyond chance."""
NARROW = 0.25
"""Range of the levels of the groups of one side, over the factor between the sides (logarithms)."""
MOST_ROWS, MOST_KINDS, MOST_FIELDS = 200_000, 40, 12
FILE = "file"
"""How the files are called as a field of few kinds, behind all that the rows have."""
LOOKED = 20_000
"""Rows that two sides are looked for in: of more, every second or third."""
_SAYS_UNIT = re.compile(r"(^|[_.])(units?|currency|scale|format|precision|resolution|convention|metric|measure|"
                        r"quantity|variable|parameter|feature|name|key|kind|type)s?$", re.IGNORECASE)
"""How fields are called whose value says what the number of its row is."""
_IS_UNIT = re.compile(r"(^|[\W_])([munµ]?s|secs?|seconds?|min(ute)?s?|h|hours?|milli\w*|micro\w*|nano\w*|[kmcµ]?m|"
                      r"[kmµ]?g|kilo\w*|iso|unix|epoch)$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class MixedUnits:
    """Rows whose numbers are `factor` times as large as those of the others."""

    field: str
    large: tuple[Array, ...]
    """bool shape (rows,) of each shard."""
    factor: float
    told: str
    time: bool
    by: str = ""
    """The field that tells them from the others, "" where none does."""
    parts: tuple[str, ...] = ()
    """The values of that field where the numbers are large."""
    rest: tuple[str, ...] = ()
    declared: bool = False
    """Whether that field says what the unit is."""
    origin: bool = True


@dataclass(frozen=True, eq=False)
class Kinds:
    """A field of few kinds: its name, what its values are called, and int64 shape (rows of all shards,) which is whose.
    """

    by: str
    names: tuple[str, ...]
    member: Array


def kinds_of(group: Sequence[Shard]) -> tuple[Kinds, ...]:
    """The fields of few kinds of some files, those that are called as origins first, and the files themselves."""
    found = []
    for by in _few_kinds(group):
        kinds, member = np.unique(np.concatenate([keys(s.columns[by]) for s in group]), return_inverse=True)
        found.append(Kinds(by, tuple(label_name(group, by, k).strip("'") for k in kinds), member.reshape(-1)))
    if len(group) > 1:
        of_file = np.repeat(np.arange(len(group)), [s.rows for s in group])
        found.append(Kinds(FILE, tuple(short(s) for s in group), of_file))
    return tuple(found)


def mixed_moments(group: Sequence[Shard], name: str, kinds: Sequence[Kinds]) -> MixedUnits | None:
    """Of a field of moments since 1970 the rows that have another unit than most; None where all have one."""
    values = [_numbers(s.columns[name]) for s in group]
    every = np.concatenate(values)
    if not np.nanmax(np.where(np.isfinite(every), every, -np.inf)) >= EPOCH[0] * 1e3:
        return None
    masks = {f: [(v >= EPOCH[0] * f) & (v <= EPOCH[1] * f) for v in values] for f in UNITS}
    counts = {f: int(sum(m.sum() for m in some)) for f, some in masks.items()}
    there = [f for f, n in counts.items() if n >= max(FEWEST, SHARE * len(every))]
    if len(there) != 2 or sum(counts.values()) < COVERED * len(every):
        return None
    low, high = there
    a, b = every[np.concatenate(masks[low])] / low, every[np.concatenate(masks[high])] / high
    if min(a.max(), b.max()) <= max(a.min(), b.min()):
        return None  # the clock of one part began to count anew: they are no mixture
    large = tuple(masks[high])
    by, parts, rest = _told_by([k for k in kinds if k.by != name], large)
    return MixedUnits(name, large, high / low, f"{UNITS[high]} among {UNITS[low]}", True, by, parts, rest,
                      _declares(by, parts))


def mixed_groups(group: Sequence[Shard], name: str, kinds: Sequence[Kinds]) -> Iterator[MixedUnits]:
    """Of any other field of numbers, by each field of few kinds: two sides that one factor makes alike."""
    values = np.concatenate([_numbers(s.columns[name]) for s in group])
    step = max(1, -(-len(values) // LOOKED))
    values = values[::step]
    good = np.isfinite(values) & (values != 0)
    if int(good.sum()) < 2 * ROWS or len(np.unique(values[good][:2000])) < FEWEST:
        return
    for cut in (k for k in kinds if k.by != name and (k.by != FILE or is_time(name))):  # D104 compares files
        member = cut.member[::step]
        parts = [np.abs(values[good & (member == k)]) for k in range(len(cut.names))]
        known = [k for k, p in enumerate(parts) if len(p) >= ROWS]
        if len(known) < 2 or sum(len(parts[k]) for k in known) < COVERED * int(good.sum()):
            continue
        found = _two_sides(known, [float(np.median(np.log(parts[k]))) for k in known])
        if found is None:
            continue
        small, large, factor = found
        a, b = (np.concatenate([values[good & (member == k)] for k in side]) for side in (small, large))
        if _fits(a, b, factor):
            rows = np.split(np.isin(cut.member, large), np.cumsum([s.rows for s in group])[:-1])
            there, rest = (tuple(cut.names[k] for k in side) for side in (large, small))
            yield MixedUnits(name, tuple(rows), factor, FACTORS[factor], False, cut.by, there, rest,
                             _declares(cut.by, there + rest), cut.by == FILE or called_origin(cut.by))


def _two_sides(known: Sequence[int], levels: Sequence[float]) -> tuple[list[int], list[int], float] | None:
    """The groups on both sides of the widest gap, where that is one of the factors and both sides are narrow."""
    order = np.argsort(levels)
    sorted_levels = np.array(levels)[order]
    gap = int(np.argmax(np.diff(sorted_levels)))
    low, high = sorted_levels[: gap + 1], sorted_levels[gap + 1 :]
    away = float(np.median(high) - np.median(low))
    factor = min(FACTORS, key=lambda f: abs(away - math.log(f)))
    wide = max(float(np.ptp(low)), float(np.ptp(high)))
    if abs(away - math.log(factor)) > max(WITHIN, wide, 0.2) or wide > NARROW * math.log(factor):
        return None
    return [known[i] for i in order[: gap + 1]], [known[i] for i in order[gap + 1 :]], factor


def _fits(small: Array, large: Array, factor: float) -> bool:
    """Whether the sides are apart as they are, alike after the division, and no other factor nearby does better."""
    noise = 1.36 * math.sqrt(1.0 / len(small) + 1.0 / len(large))
    small, large = np.sort(small), np.sort(large)
    if distance(small, large) < APART or distance(small, large / factor) > LEFT + noise:
        return False
    exact = float(np.median(np.log(np.abs(large))) - np.median(np.log(np.abs(small))))
    spread = float(np.subtract(*np.quantile(np.log(np.abs(small)), (0.75, 0.25))))
    return abs(exact - math.log(factor)) <= max(WITHIN, 2.0 * spread * noise)


def _numbers(column: Column) -> Array:
    return np.asarray(column.values, np.float64)


def _few_kinds(group: Sequence[Shard]) -> Sequence[str]:
    names = [n for n in group[0].columns if not is_target(n) and all(
        (c := s.columns.get(n)) is not None and _is_kind(c, s.rows) for s in group)]
    return sorted(names, key=lambda n: not called_origin(n))[:MOST_FIELDS]


def _is_kind(column: Column, rows: int) -> bool:
    if column.rows != rows or column.row_shape or column.missing is not None or column.kind == "sequence":
        return False
    if column.kind == "text" and (column.digests is None or len(column.texts) != rows):
        return False
    return not column.is_float and len(np.unique(keys(column)[:5000])) <= MOST_KINDS and (
        len(np.unique(keys(column))) <= MOST_KINDS)


def _told_by(kinds: Sequence[Kinds], large: Sequence[Array]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The field whose value tells the rows of the larger numbers, with its values there and elsewhere."""
    inside = np.concatenate(large)
    for cut in kinds:
        shares = np.bincount(cut.member, inside, len(cut.names)) / np.bincount(cut.member)
        if len(cut.names) > 1 and (np.minimum(shares, 1.0 - shares) <= 1.0 - COVERED).all():
            there, rest = ([n for n, s in zip(cut.names, shares, strict=True) if (s > 0.5) == odd]
                           for odd in (True, False))
            return cut.by, tuple(there), tuple(rest)
    return "", (), ()


def says_unit(name: str) -> bool:
    """Whether a field is called as one whose value says what a number is, or in which unit."""
    return _SAYS_UNIT.search(name) is not None


def _declares(by: str, values: Sequence[str]) -> bool:
    return bool(by) and (says_unit(by) or any(_IS_UNIT.search(v) for v in values))
