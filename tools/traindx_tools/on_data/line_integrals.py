"""Whether a field is the slope of a number along another field: forces along positions, and the energy.

From a row to the one that is nearest along the other field the number changes by the mean of the field times the step
(the trapezoidal rule), or by as much with the other sign: energies fall along forces and rise along gradients. Neither
needs a model, nor an order of the rows. Of which of both a file holds its name says nothing; that one part says the
contrary of all others, or another unit, does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import Cut, cuts_of
from traindx_tools.on_data.roles import is_identifier
from traindx_tools.on_data.shard import Shard

FEWEST = 40
"""Rows of a part."""
OTHERS = 2
"""Parts beside the odd one, at least."""
ALONG = 0.9
"""Correlation of the changes with the field times the step, without its sign, in every part."""
ALIKE, APART = 1.5, 3.0
"""Times by which the factors of all other parts differ at most, and by which that of the odd one does at least: steps
are no differentials, and where they are wide a factor is not exact."""
MOST_ROWS, MOST_STEPS = 4_000, 300
WIDTH = 600
MOST_FIELDS = 6


@dataclass(frozen=True, eq=False)
class Slope:
    """Part `part` of a cut, in which `slope` is the slope of `number` along `along` times `own`, and times `usual` in
    all other parts."""

    number: str
    along: str
    slope: str
    cut: Cut
    part: int
    own: float
    usual: float
    fits: tuple[float, float]
    """The correlations: in the part, and the least of the others, without their signs."""
    rows: int


def odd_slopes(group: Sequence[Shard], labels: Sequence[str]) -> Iterator[Slope]:
    """One for each number and pair of fields, by the first way to cut the rows that tells it."""
    fields = [n for n, c in group[0].columns.items() if _is_field(c)][:MOST_FIELDS]
    numbers = [n for n, c in group[0].columns.items() if _is_number(c)][:MOST_FIELDS]
    cuts = list(cuts_of(group, labels)) if numbers and len(fields) > 1 else []
    for along, slope in permutations(fields, 2) if cuts else ():
        for number in numbers:
            values = _values(group, (number, along, slope))
            if values is None or values[1].shape != values[2].shape:
                continue
            found = next((f for cut in cuts if (f := _odd(cut, *values)) is not None), None)
            if found is not None:
                yield Slope(number, along, slope, *found)


def _is_field(column: Column) -> bool:
    return column.is_float and column.kind == "number" and 2 <= int(np.prod(column.row_shape)) <= WIDTH


def _is_number(column: Column) -> bool:
    return column.is_float and int(np.prod(column.row_shape)) == 1 and not is_identifier(column)


def _values(group: Sequence[Shard], names: Sequence[str]) -> list[Array] | None:
    """float64 (rows, values) of each field, over all files."""
    found = []
    for name in names:
        columns = [s.columns.get(name) for s in group]
        kept = [c for c, s in zip(columns, group, strict=True) if c is not None and c.rows == s.rows]
        if len(kept) < len(group) or len({c.row_shape for c in kept}) > 1:
            return None
        found.append(np.concatenate([np.asarray(c.values, np.float64).reshape(c.rows, -1) for c in kept]))
    return found


def _steps(rows: Array, number: Array, along: Array, slope: Array) -> tuple[Array, Array]:
    """Of steps from some rows to the nearest one: the change of the number, and the mean field times the step."""
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(np.int64))]
    some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_STEPS)).astype(np.int64))
    x = along[rows] - along[rows].mean(axis=0)
    squares = (x * x).sum(axis=1)
    far = squares[None] - 2.0 * x[some] @ x.T + squares[some, None]
    far[far <= 1e-9 * float(squares.mean())] = np.inf  # the row itself, and copies of it
    here, there = rows[some], rows[far.argmin(axis=1)]
    product = (0.5 * (slope[here] + slope[there]) * (along[there] - along[here])).sum(axis=1)
    return (number[there] - number[here])[:, 0], product


def _odd(cut: Cut, number: Array, along: Array, slope: Array
         ) -> tuple[Cut, int, float, float, tuple[float, float], int] | None:
    member = np.concatenate(cut.member)
    good = np.isfinite(along).all(axis=1) & np.isfinite(slope).all(axis=1) & np.isfinite(number).all(axis=1)
    parts = [p for p in range(len(cut.names)) if int((good & (member == p)).sum()) >= FEWEST]
    if len(parts) <= OTHERS:
        return None
    fits, factors = np.zeros(len(parts)), np.zeros(len(parts))
    for k, part in enumerate(parts):
        y, x = _steps(np.flatnonzero(good & (member == part)), number, along, slope)
        size = float(np.sqrt((x @ x) * (y @ y)))
        if not size > 0 or abs(float(x @ y)) < ALONG * size:
            return None
        fits[k], factors[k] = float(x @ y) / size, float(y @ x) / float(x @ x)
    usual = float(np.median(factors)) if len(factors) % 2 else float(np.sort(factors)[len(factors) // 2])
    ratios = factors / usual
    odd = int(np.argmax(np.where(ratios < 0, np.inf, np.abs(np.log(np.abs(ratios))))))
    rest = np.delete(ratios, odd)
    mine = float(ratios[odd]) / float(np.median(rest))
    if (rest <= 0).any() or rest.max() > ALIKE * rest.min() or (mine > 0 and 1 / APART < mine < APART):
        return None
    if mine < 0 and not (1 / ALIKE < -mine < ALIKE or -mine > APART or -mine < 1 / APART):
        return None
    sure = abs(float(fits[odd])), float(np.abs(np.delete(fits, odd)).min())
    rows = int((good & (member == parts[odd])).sum())
    return cut, parts[odd], float(factors[odd]), float(np.median(np.delete(factors, odd))), sure, rows


_ENERGY = re.compile(r"(?i)(^|[_./])(e|energy|energies|e_?pot|epot|potential(_energy)?|total_energy|u)$")
_FORCE = re.compile(r"(?i)(^|[_./])(f|forces?|frc)$")
"""What energies and forces are called: the one pair of fields whose sign their names do say."""


def gradients_for_forces(group: Sequence[Shard]) -> Iterator[Slope]:
    """Fields called forces along which an energy rises, in all parts: they are its gradients."""
    fields = [n for n, c in group[0].columns.items() if _is_field(c)][:MOST_FIELDS]
    numbers = [n for n, c in group[0].columns.items() if _is_number(c) and _ENERGY.search(n)][:MOST_FIELDS]
    for slope in (n for n in fields if _FORCE.search(n)):
        for along, number in product((n for n in fields if n != slope), numbers):
            values = _values(group, (number, along, slope))
            if values is None or values[1].shape != values[2].shape:
                continue
            parts = [np.full(s.rows, k) for k, s in enumerate(group)]
            member = np.concatenate(parts) if len(group) > 1 else np.arange(group[0].rows) * 3 // group[0].rows
            told = [_slope(np.flatnonzero(member == k), *values) for k in range(int(member.max()) + 1)
                    if int((member == k).sum()) >= FEWEST]
            if len(told) > OTHERS and all(fit >= ALONG and factor > 0 for fit, factor in told):
                cut = Cut("", tuple(s.name for s in group), tuple(parts), True)
                least, factor = min(fit for fit, _ in told), float(np.median([f for _, f in told]))
                yield Slope(number, along, slope, cut, 0, factor, -factor, (least, least), len(member))


def _slope(rows: Array, number: Array, along: Array, slope: Array) -> tuple[float, float]:
    """Correlation of the changes with the field times the step, and the factor between them."""
    y, x = _steps(rows, number, along, slope)
    size = float(np.sqrt((x @ x) * (y @ y)))
    good = size > 0 and np.isfinite(size)
    return (float(x @ y) / size, float(y @ x) / float(x @ x)) if good else (0.0, 0.0)
