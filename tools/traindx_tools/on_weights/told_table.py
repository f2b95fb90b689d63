"""What a search over formulas says of a table that is not that of its configuration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MOST, _FEWEST = 0.6, 8
"""Share and number of rows that follow a formula, before the others are odd."""
_EXACT, _FAR = 1e-4, 0.01
"""Of the largest value, or of the range: the digits of float32, and what is no rounding and no small update."""


@dataclass(frozen=True)
class Told:
    """`kind`: of which formula. `what`: in words. `setting`: the one that another value of would make the table, with
    the value that is `asked` and the one that is `found`; "" where some of the table's rows are wrong."""

    kind: str
    what: str
    setting: str = ""
    asked: str = ""
    found: str = ""
    rows: tuple[int, ...] = ()


def of_setting(kind: str, formula: str, setting: str, asked: object, found: object) -> Told:
    """A table that follows a formula with another value of one setting."""
    said, held = (f"{v:g}" if isinstance(v, float) else str(v) for v in (asked, found))
    what = f"is {formula} for {setting} = {held}; the configuration beside it says {said}"
    return Told(kind, what, setting, said, held)


def of_rows(kind: str, formula: str, rows: tuple[int, ...], total: int, unit: str = "rows") -> Told:
    """A table of which most rows follow the formula of the configuration."""
    listed = ", ".join(map(str, rows[:4])) + (f" and {len(rows) - 4} more" if len(rows) > 4 else "")
    return Told(kind, f"is {formula} but for {len(rows)} of {total} {unit} ({listed})", rows=rows)


def few_wrong(apart: NDArray[np.float64], scale: float, fewest: int = _FEWEST) -> tuple[int, ...]:
    """The rows that are far from their formula, where most are exactly of it; none where some are near alone.

    What was trained from the formula on has moved everywhere, and what another formula makes is near in places.
    `apart`: how far each row is, in the unit of `scale`.
    """
    right, far = apart <= _EXACT * scale, apart > _FAR * scale
    if right.mean() < _MOST or right.sum() < fewest or not far.any():
        return ()
    return tuple(int(i) for i in np.flatnonzero(~right)) if far.sum() >= 0.5 * (~right).sum() else ()
