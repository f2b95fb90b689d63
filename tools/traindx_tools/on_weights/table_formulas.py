"""Formulas of tables that models store, and which row of a formula each row of a table is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Formulas = Callable[[int, int, float], Iterator[tuple[str, Array]]]
"""Tables of so many rows and columns, with a base."""
_NEAR = 0.02
"""Absolute error of a value of a table of sines: half precision and other bases' rounding stay below."""
BASES = (100.0, 1000.0, 10000.0, 20000.0, 50000.0, 100000.0, 160000.0, 200000.0, 500000.0, 1000000.0, 5000000.0,
         10000000.0)
"""Of sines and rotary angles: papers, and models that were stretched for long contexts."""
MOST_ROWS = 4096
"""Rows that are looked for in each other's places."""


@dataclass(frozen=True)
class Rows:
    """A table beside a formula. `place`: which row of the formula each row is; -1 where it is none of them."""

    formula: str
    place: NDArray[np.intp]

    @property
    def found(self) -> int:
        """Rows that are rows of the formula, wherever they stand."""
        return int((self.place >= 0).sum())

    @property
    def wrong(self) -> NDArray[np.intp]:
        """Rows that are not the row of their place."""
        return np.flatnonzero(self.place != np.arange(len(self.place)))


def sines(rows: int, width: int, base: float = 10000.0) -> Iterator[tuple[str, Array]]:
    """Vaswani et al. 2017, section 3.5: base 10000, in turn as there, and in halves as fairseq has them; and the sine
    or cosine alone, as caches of rotary positions keep it."""
    half = width // 2
    for last, exponent in (("d", np.arange(half) / half), ("(d-2)", np.arange(half) / max(1, half - 1))):
        for start in (0, 1):
            angle = np.arange(start, rows + start)[:, None] * base ** -exponent
            said = f"(p{'+1' if start else ''})/{base:g}^(2i/{last})"
            for names, a, b in (("sin, cos", np.sin(angle), np.cos(angle)), ("cos, sin", np.cos(angle),
                                                                            np.sin(angle))):
                turn = np.zeros((rows, width))
                turn[:, 0: 2 * half: 2], turn[:, 1: 2 * half: 2] = a, b
                yield f"{names} of {said} in turn", turn
                yield f"{names} of {said} in halves", np.concatenate([a, b, np.zeros((rows, width - 2 * half))], axis=1)


def rotary(rows: int, width: int, base: float = 10000.0) -> Iterator[tuple[str, Array]]:
    """Cosine or sine of the angles of rotary positions, once, in halves and in turn (Su et al. 2021)."""
    for count in {width, width // 2}:
        angle = np.arange(rows)[:, None] * base ** (-np.arange(count) / count)
        for name, table in (("cos", np.cos(angle)), ("sin", np.sin(angle))):
            said = f"{name} of p/{base:g}^(i/{count})"
            if count == width:
                yield said, table
            elif 2 * count == width:
                yield f"{said} in halves", np.concatenate([table, table], axis=1)
                yield f"{said} in turn", np.repeat(table, 2, axis=1)


def window_index(size: int) -> Array | None:
    """Relative places in a square window, as Swin has them (Liu et al. 2021); None where `size` is no square."""
    side = round(size**0.5)
    if side * side != size or side < 2:
        return None
    y, x = np.divmod(np.arange(size), side)
    return np.asarray((y[:, None] - y + side - 1) * (2 * side - 1) + x[:, None] - x + side - 1, np.float64)


def matched(formula: str, table: Array, made: Array, near: float = _NEAR) -> Rows:
    """The row of the formula that each row of the table is, all of its values within `near`; its own place first."""
    place = np.where((np.abs(table - made) <= near).all(axis=1), np.arange(len(table)), -1)
    odd = np.flatnonzero(place < 0)
    if not len(odd) or len(table) > MOST_ROWS:
        return Rows(formula, place)
    squares = (made**2).sum(1)
    bound = near**2 * table.shape[1] + 1e-9
    for part in np.array_split(odd, max(1, len(odd) // 512)):
        apart = squares - 2 * table[part] @ made.T  # squared distance but for the row's own norm
        best = apart.argmin(axis=1)
        near_enough = ((table[part] - made[best])**2).sum(1) <= bound
        place[part] = np.where(near_enough & (np.abs(table[part] - made[best]) <= near).all(axis=1), best, -1)
    return Rows(formula, place)


def of_base(table: Array, formulas: Formulas, base: float) -> str:
    """The formula of which all rows are in their own places, "" where there is none."""
    rows, width = table.shape
    for formula, made in formulas(rows, width, base):
        if bool((np.abs(table - made) <= _NEAR).all()):
            return formula
    return ""


def said(rows: Rows) -> str:
    """Which rows stand wrong, and what they hold instead."""
    wrong, total = rows.wrong, len(rows.place)
    first = int(wrong[0])
    held = rows.place[wrong]
    if (held >= 0).all() and len(np.unique(wrong - held)) == 1 and np.array_equal(
            wrong, np.arange(wrong[0], wrong[0] + len(wrong))):
        last = int(wrong[-1])
        return f"rows {first}..{last} of {total} hold those of {int(held[0])}..{int(held[-1])} again"
    if (held >= 0).all() and len(np.unique(held)) == len(held):
        return (f"{len(wrong)} of {total} rows are permuted (the first is row {first}, which holds that of "
                f"{int(held[0])})")
    other = f", which holds that of {int(held[0])}" if held[0] >= 0 else ""
    span = f"rows {first}..{int(wrong[-1])}: " if len(wrong) == wrong[-1] - first + 1 and len(wrong) > 1 else ""
    return f"{span}{len(wrong)} of {total} rows are not (the first is row {first}{other})"
