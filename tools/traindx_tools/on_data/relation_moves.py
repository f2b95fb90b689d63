"""Parts in which a relation is broken that all others keep, and the one operation that brings it back.

A relation is what the rest of a row says of one of its numbers. It is broken in a part where far more is left than in
any other one. Then the number is moved by some rows, turned, reversed, brought to another unit, or exchanged with
another one of its kind; where one of these leaves as little as elsewhere, that is what happened to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.relation_fits import Fits, left_of, own, told_by_itself, told_of, usual_variance
from traindx_tools.on_data.repairs import FACTORS
from traindx_tools.on_data.significance import LEVEL, distance, student_tail

MOST_COMPARED = 8
"""Other parts in which a move is tried as well."""
REACH = 24
"""Rows by which a number is moved at most."""
DAY = 24
"""Rows after which hours are as they were."""
TOLD = 0.3
"""Share of the variance that the rest of a row tells of a number, in the typical part."""
CLOSE = 0.7
"""The same for two numbers that are exchanged."""
CLEAR = 0.85
"""The same for what may differ by nature: a unit."""
BROKEN = 1.5
"""Times the errors of the worst of the other parts."""
LEFT = 0.6
"""Of the errors of a broken part, that an operation may leave."""
AS_GOOD = 1.2
"""Times the errors of the worst other part, that an operation may leave."""
FEW = 0.34
"""Share of the parts that may be broken."""
FEWEST_PARTS = 3
WITHIN = 0.03
MOST_OTHERS = 8
FLOOR, MOST = 1e-3, 3.0
"""Share of the variance below which errors are none, and the logarithm of a ratio of errors that counts at most."""
LOST, ALIKE, OWN = 0.1, 2.0, 0.3
"""A relation is lost where so little is told, rows are as far out as elsewhere, and their own model tells no more."""
FEWEST_LOST = 100
SAME = 0.08
"""Distance of distributions of a number that is lost, beyond sampling."""
KEPT = 0.5
"""Share of the numbers of a row that are told as elsewhere where one is lost."""
_EDGE = 2


@dataclass(frozen=True)
class Move:
    """What is done to a number of a part. `kind`: rows, turned, reversed, unit, exchanged, lost."""

    kind: str
    by: float = 0.0
    other: int = -1


@dataclass(frozen=True, eq=False)
class Undone:
    """Atom `atom` of part `part`, and the move after which it is told as elsewhere."""

    part: int
    atom: int
    move: Move
    before: float
    after: float
    typical: float
    log_chance: float


def undone(fits: Fits, comparisons: float) -> list[Undone]:
    """The broken parts of a cut. A number is told of where a few parts alone are broken, all by one move."""
    if len(fits.inside) < FEWEST_PARTS:
        return []
    found: list[Undone] = []
    for atom in range(len(fits.design.records.atoms)):
        found += _of_atom(fits, atom, comparisons * len(fits.inside) * len(fits.design.records.atoms))
    return found


def _of_atom(fits: Fits, atom: int, comparisons: float) -> list[Undone]:
    told = {p: float(t[atom]) for p, t in fits.told.items() if np.isfinite(t[atom])}
    if len(told) < FEWEST_PARTS:
        return []
    typical = float(np.median(list(told.values())))
    most = max(1, int(FEW * len(told)))
    order = sorted(told, key=lambda p: told[p])
    errors = {p: 1.0 - told[p] for p in order}
    for count in range(most, 0, -1):  # the parts that are worse than the worst of the rest, by far
        worst = max(FLOOR, errors[order[count]])
        if typical >= TOLD and errors[order[count - 1]] >= BROKEN * worst and worst < 1.0 - 0.5 * typical:
            moves = [_move(fits, atom, p, worst, typical, comparisons) for p in order[:count]]
            made = [m for m in moves if m is not None and _alone(
                fits, m.part, [k for k in (m.atom, m.move.other) if k >= 0])]
            if len(made) == count and len({(m.move.kind, m.move.other, m.move.by) for m in made}) == 1:
                return made
    return []


def _move(fits: Fits, atom: int, part: int, worst: float, typical: float, comparisons: float) -> Undone | None:
    """The move after which the least is left, where that is as little as elsewhere."""
    rows = fits.inside[part]
    before = fits.left[part][:, atom]
    number = own(fits.design, atom, rows)
    said = number - before
    base = 1.0 - told_of(number, before, usual_variance(fits.design, atom))
    tries = [(m, n, left, float(left.var()) / max(1e-12, float(n.var()))) for m, n, left in (
        *_own_moves(fits, atom, rows, number, said, typical), *_exchanges(fits, atom, part))]
    if not tries:
        return None
    move, _, left, error = _least(tries)
    if error > min(LEFT * base, max(AS_GOOD * worst, 1.0 - 0.8 * typical)) or 1.0 - error < 0.75 * typical:
        return None
    if move.kind == "rows" and _better_anywhere(fits, atom, part, move):
        return None
    kept = np.isfinite(left) if len(left) == len(before) else np.zeros(len(before), bool)
    chance = _chance(before, left, kept) if kept.any() else _chance_of(before, left)
    chance += math.log(comparisons * len(tries))
    return Undone(part, atom, move, 1.0 - base, 1.0 - error, typical, chance) if chance < math.log(LEVEL) else None


def _better_anywhere(fits: Fits, atom: int, part: int, move: Move) -> bool:
    """Whether the numbers of the other parts fit their rows better by that many rows as well: windows that overlap hold
    the number of the row before."""
    ratios = []
    for other in [p for p, t in fits.told.items() if p != part and np.isfinite(t[atom])][:MOST_COMPARED]:
        rows, before = fits.inside[other], fits.left[other][:, atom]
        number = own(fits.design, atom, rows)
        left = next((x for m, _, x in _own_moves(fits, atom, rows, number, number - before, 0.0) if m == move), None)
        if left is not None and before.var() > 0:
            ratios.append(float(left.var() / before.var()))
    return bool(ratios) and float(np.median(ratios)) < 1.0


def _least(tries: Sequence[tuple[Move, Array, Array, float]]) -> tuple[Move, Array, Array, float]:
    """The one that leaves the least; of two moves a day of hours apart the shorter one, where it is as good."""
    best = min(tries, key=lambda t: t[3])
    if best[0].kind != "rows" or abs(best[0].by) <= DAY // 2:
        return best
    other = [t for t in tries if t[0].kind == "rows" and abs(t[0].by - best[0].by) == DAY]
    return other[0] if other and other[0][3] <= AS_GOOD * best[3] else best


def _own_moves(fits: Fits, atom: int, rows: Array, number: Array, said: Array, typical: float
               ) -> Iterator[tuple[Move, Array, Array]]:
    records = fits.design.records
    place = records.block[rows] * (int(records.row.max()) + 1) + records.row[rows]
    order = np.argsort(place, kind="stable")
    number, said, block = number[order], said[order], records.block[rows][order]
    reach = min(REACH, len(rows) // 8)
    for k in (k for k in range(-reach, reach + 1) if k):
        moved, here = (number[k:], slice(None, -k)) if k > 0 else (number[:k], slice(-k, None))
        same = block[k:] == block[:-k] if k > 0 else block[:k] == block[-k:]
        if same.sum() > 0.7 * len(rows):
            yield Move("rows", k), moved[same], (moved - said[here])[same]
    yield Move("turned"), -number, -number - said
    if len(np.unique(block)) == 1 or len(rows) > 0:
        back = number[::-1]
        yield Move("reversed"), back, back - said
    if typical >= CLEAR and float(said.var()) > 0:
        slope = float(np.cov(number, said)[0, 1] / said.var(ddof=1))
        for factor in (f for g in FACTORS for f in (g, 1.0 / g)):
            if slope > 0 and abs(math.log(slope / factor)) < WITHIN:
                yield Move("unit", factor), number / factor, number / factor - said


def _exchanges(fits: Fits, atom: int, part: int) -> Iterator[tuple[Move, Array, Array]]:
    """With another atom of the same kind, where both are told as elsewhere then."""
    design, rows = fits.design, fits.inside[part]
    atoms = design.records.atoms
    told = fits.told[part]
    alike = [j for j, a in enumerate(atoms) if j != atom and a.values.shape[1] == atoms[atom].values.shape[1]
             and np.isfinite(told[j])]
    usual = np.median(np.nan_to_num(np.stack(list(fits.told.values()))), axis=0)
    alike = [j for j in alike if min(usual[atom], usual[j]) >= CLOSE]
    for j in sorted(alike, key=lambda j: told[j])[:MOST_OTHERS]:
        values = [a.values[rows] for a in atoms]
        values[atom], values[j] = values[j], values[atom]
        x = design.features(values, design.records.beside[rows])
        both = [left_of(design, t, x, fits.inverse[part]) for t in (atom, j)]
        worst = max(1.0 - min((float(t[j]) for p, t in fits.told.items() if p != part and np.isfinite(t[j])),
                              default=0.0), FLOOR)
        if 1.0 - told_of(x[:, design.first[j]].astype(np.float64), both[1], 1e-9) <= AS_GOOD * worst:
            yield Move("exchanged", other=j), x[:, design.first[atom]].astype(np.float64), both[0]


def _chance(before: Array, after: Array, kept: Array) -> float:
    """Log of the chance of a gain so large, row by row; what has no rows in common is compared as two samples."""
    gain = np.log((before - before.mean())[kept] ** 2 + FLOOR) - np.log((after - after[kept].mean())[kept] ** 2 + FLOOR)
    gain = np.clip(gain, -MOST, MOST)
    return _tail(gain)


def _chance_of(before: Array, after: Array) -> float:
    one, two = (np.log((v - v.mean()) ** 2 + FLOOR) for v in (before, after))
    few = min(len(one), len(two))
    return _tail(np.clip(one[:few] - two[:few], -MOST, MOST))


def _tail(gain: Array) -> float:
    moves = gain[1:].std() > 0 and gain[:-1].std() > 0
    near = float(np.corrcoef(gain[1:], gain[:-1])[0, 1]) if moves else 0.0
    near = min(0.95, max(0.0, near))
    worth = max(3.0, len(gain) * (1.0 - near) / (1.0 + near))
    t = float(gain.mean()) / max(1e-12, float(gain.std())) * math.sqrt(worth)
    return math.log(max(student_tail(t, worth - 1.0), 1e-300)) if t > 0 else 0.0


def lost(fits: Fits, moved: Sequence[Undone]) -> Iterator[Undone]:
    """The one part in which a number has nothing to do with its row, by the others' model and by its own."""
    design = fits.design
    for atom in range(len(design.records.atoms)):
        told = {p: float(t[atom]) for p, t in fits.told.items() if np.isfinite(t[atom])}
        if len(told) < FEWEST_PARTS + 1 or any(m.atom == atom for m in moved):
            continue
        order = sorted(told, key=lambda p: told[p])
        part, rest = order[0], [told[p] for p in order[1:]]
        typical, rows = float(np.median(rest)), fits.inside[order[0]]
        if min(rest) < 0.5 or told[part] > LOST or len(rows) < FEWEST_LOST or not (
                _as_far_out(fits, atom, part) and _distributed_alike(fits, atom, part) and _alone(fits, part, [atom])):
            continue
        others = [told_by_itself(design, atom, fits.inside[p][: len(rows)]) for p in order[1:4]]
        mine = told_by_itself(design, atom, rows)
        if float(np.median(others)) >= 0.3 and mine <= OWN * float(np.median(others)):
            yield Undone(part, atom, Move("lost"), told[part], mine, typical, 0.0)


def _distributed_alike(fits: Fits, atom: int, part: int) -> bool:
    """Whether the number has the values that it has elsewhere: it was paired otherwise, and not measured so."""
    mine = np.sort(own(fits.design, atom, fits.inside[part]))
    rest = np.sort(np.concatenate([own(fits.design, atom, i) for p, i in fits.inside.items() if p != part]))
    return distance(mine, rest) <= SAME + 1.36 * math.sqrt(1.0 / len(mine) + 1.0 / len(rest))


def _alone(fits: Fits, part: int, without: Sequence[int]) -> bool:
    """Whether most of the other numbers are told in the part as elsewhere, when the odd ones say nothing of them.

    A noisier source, or one that was measured otherwise as a whole, loses all of them.
    """
    design = fits.design
    rest = [t for t in range(len(design.records.atoms)) if t not in without]
    told = {p: np.array([told_of(own(design, t, i), left_of(design, t, design.x[i], fits.inverse[p], without),
                                 usual_variance(design, t)) for t in rest]) for p, i in _some(fits, part).items()}
    others = np.stack([np.nan_to_num(t) for p, t in told.items() if p != part])
    typical = np.median(others, axis=0)
    asked = (typical >= TOLD) & np.isfinite(told[part])
    return not asked.any() or float((told[part] >= 0.7 * typical)[asked].mean()) >= KEPT


def _some(fits: Fits, part: int) -> dict[int, Array]:
    """A part and a few others."""
    rest = [p for p in fits.inside if p != part]
    return {p: fits.inside[p] for p in (part, *rest[:: max(1, len(rest) // MOST_OTHERS)])}


def _as_far_out(fits: Fits, atom: int, part: int) -> bool:
    """Whether the rest of the rows is of numbers that the other parts know as well."""
    rest = np.flatnonzero(~fits.design.owners[atom])
    sizes = {p: float((fits.design.x[i][:, rest] ** 2).mean()) for p, i in fits.inside.items()}
    return sizes[part] <= ALIKE * float(np.median(list(sizes.values())))
