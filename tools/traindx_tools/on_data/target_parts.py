"""Parts of the rows in which a number does not go along with what its row says: against it, moved, or not at all.

In every other file, group or stretch the two agree. A part in which they run against each other was scored the other
way round; one that agrees after a move by some rows was moved; one that agrees in no way, while a model of its own rows
finds nothing either, has numbers of other rows. A part with a relation of its own, or with inputs that tell
less, is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut
from traindx_tools.on_data.number_targets import Predicted, correlation, told_by_itself
from traindx_tools.on_data.significance import LEVEL, normal_tail
from traindx_tools.on_data.stretches import Stretch, heaviest

FEWEST = 40
"""Rows of a part."""
AGREES = 0.4
"""Correlation of what rows say with the number, in the typical part."""
AGAINST, LOST, MOVED = -0.6, 0.25, 0.75
"""Of that, what is left in a part that runs against it and in one that is lost, at most, and after a move, at least."""
VARIES = 0.6
"""Of the usual spread, that of what rows say in a part: less, and its inputs tell less."""
OWN = 0.5
"""Of the usual correlation, that of a model of the part's own rows, above which it has a relation of its own."""
SMOOTH = 0.5
"""Correlation of neighbours from which on rows are a series, of which a stretch may have a regime of its own."""
FARTHEST = 64
SHARE = 0.34
"""Share of the parts that may be odd."""
MOST = 0.6
"""Share of the rows that a part may hold."""


@dataclass(frozen=True, eq=False)
class Apart:
    """Group `part` of a cut, or a stretch of shard `index`. `kind`: against, moved or lost."""

    field: str
    kind: str
    here: float
    others: float
    after: float
    log_chance: float
    lag: int = 0
    cut: Cut | None = None
    part: int = -1
    index: int = 0
    stretch: Stretch | None = None


def parts_apart(found: Predicted, cuts: Sequence[Cut], comparisons: float) -> Iterator[Apart]:
    """The odd parts of every cut, or of each file the odd stretch where no cut has one."""
    told = False
    for cut in cuts:
        member = np.concatenate([m[r] for m, r in zip(cut.member, found.rows, strict=True)])
        for one in _of_cut(found, cut, member, comparisons * len(cuts)):
            told = True
            yield one
    if not told:
        for index in range(len(found.rows)):
            odd = _stretch(found, index, comparisons)
            if odd is not None:
                yield odd


def _of_cut(found: Predicted, cut: Cut, member: Array, comparisons: float) -> Iterator[Apart]:
    said, values = np.concatenate(found.said), np.concatenate(found.values)
    inside = {p: i for p in range(len(cut.names)) if len(i := np.flatnonzero(member == p)) >= FEWEST}
    if len(inside) < 3:
        return
    agree = {p: correlation(said[i], values[i]) for p, i in inside.items()}
    spread = {p: float(said[i].std()) for p, i in inside.items()}
    typical, usual = float(np.median(list(agree.values()))), float(np.median(list(spread.values())))
    if typical < AGREES:
        return
    odd = [p for p, r in agree.items() if r <= LOST * typical]
    if not odd or len(odd) > max(1, int(SHARE * len(inside))):
        return
    least = min(r for p, r in agree.items() if p not in odd)
    if least < 0.5 * typical:
        return  # parts differ by nature
    for p in odd:
        rows = inside[p]
        chance = _chance(least, agree[p], len(rows) * _own_rows(values[rows])) + math.log(comparisons * len(inside))
        if chance >= math.log(LEVEL) or len(rows) > MOST * len(values):
            continue
        if agree[p] <= AGAINST * typical:
            yield Apart(found.field, "against", agree[p], typical, -agree[p], chance, cut=cut, part=p)
        elif abs(agree[p]) <= LOST * typical and spread[p] >= VARIES * usual:
            lag, after = _best_lag(said[rows], values[rows])
            if found.step == 1 and after >= MOVED * typical and _neighbours(values[rows]) < SMOOTH:
                yield Apart(found.field, "moved", agree[p], typical, after, chance, lag=lag, cut=cut, part=p)
            elif told_by_itself(found.features[rows], values[rows]) < OWN * typical:
                yield Apart(found.field, "lost", agree[p], typical, after, chance, cut=cut, part=p)


def _stretch(found: Predicted, index: int, comparisons: float) -> Apart | None:
    """Of a file in the order of its rows: the stretch in which the number fits rows some way off, or none."""
    said, values = found.said[index], found.values[index]
    whole = correlation(said, values)
    if len(values) < 4 * FEWEST or whole < 0.5 * AGREES or _neighbours(values) >= SMOOTH:
        return None
    lost = heaviest(_in_favour(said, values, whole))
    if not FEWEST <= lost.rows <= MOST * len(values):
        return None
    inside = lost.inside(len(values))
    others = correlation(said[~inside], values[~inside])
    here = correlation(said[inside], values[inside])
    if others < AGREES or here > LOST * others or said[inside].std() < VARIES * said[~inside].std():
        return None
    chance = _chance(others, here, int(inside.sum()) * _own_rows(values)) + math.log(
        comparisons * len(values) * (len(values) + 1) / 2)
    if chance >= math.log(LEVEL):
        return None
    if here <= AGAINST * others:
        return Apart(found.field, "against", here, others, -here, chance, index=index, stretch=lost)
    lag, after = _best_lag(said[inside], values[inside])
    if found.step == 1 and after >= MOVED * others:
        return Apart(found.field, "moved", here, others, after, chance, lag=lag, index=index, stretch=lost)
    before = sum(len(r) for r in found.rows[:index])
    rows = before + np.flatnonzero(inside)
    if told_by_itself(found.features[rows], values[inside]) >= OWN * others:
        return None
    return Apart(found.field, "lost", here, others, after, chance, index=index, stretch=lost)


def _in_favour(said: Array, values: Array, r: float) -> Array:
    """Of each row, the log of how much likelier its number is where nothing says anything of it, than where all agree.

    Both are normal scores; `r`: their correlation.
    """
    a, b = ((x - x.mean()) / max(1e-9, float(x.std())) for x in (said, values))
    left = 1.0 - min(r, 0.98) ** 2
    return np.asarray(np.clip((b - r * a) ** 2 / (2.0 * left) - b**2 / 2.0 + 0.5 * math.log(left), -4.0, 4.0))


def _best_lag(said: Array, values: Array) -> tuple[int, float]:
    """By how many rows the numbers stand too late (negative: too early), and how well they agree once moved back."""
    most = min(FARTHEST, len(values) // 4)
    lags = [k for k in range(-most, most + 1) if k]
    made = [correlation(said[: len(said) - k], values[k:]) if k > 0 else correlation(said[-k:], values[:k])
            for k in lags]
    at = int(np.argmax(made))
    return lags[at], made[at]


def _chance(others: float, here: float, rows: float) -> float:
    z = (math.atanh(min(others, 0.999)) - math.atanh(max(here, -0.999))) * math.sqrt(max(1.0, rows - 3.0))
    return math.log(max(normal_tail(z), 1e-300))


def _own_rows(values: Array) -> float:
    """The share of rows that count, where neighbours are alike."""
    near = min(0.95, max(0.0, _neighbours(values)))
    return (1.0 - near) / (1.0 + near)


def _neighbours(values: Array) -> float:
    return correlation(values[1:], values[:-1])
