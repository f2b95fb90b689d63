"""Columns that lose different values when they are converted: a clock, a number of an item, an offset.

Of what is converted both sides are there: the values before, in 64 bits, and those after. Measurements lose digits
as well, and nobody needs them: what is told has an offset beside which its rows hardly differ, or counts whole things,
and at least a tenth of its different values are gone afterwards. What is computed from the column decides whether that
matters: it is a suspicion, and the same run in double precision is the proof.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from traindx_tools.on_variables.digits import BITS, FEWEST, OFFSET
from traindx_tools.on_variables.look import Place
from traindx_tools.on_variables.visiting import is_of_jax
from traindx_tools.rows.spent import Spent

MOST_ROWS, MOST_COLUMNS, MOST_LENGTH = 20_000, 16, 10_000_000
MOST_LINES = 16
AT_ONCE, SHARE = 0.5, 0.01
"""Seconds that looking at conversions may take at once, and the share of a longer run."""
DISTINCT = 16
"""Different values before, below which a column says nothing."""
LOST = 0.1
"""Share of the different values that is gone afterwards."""


@dataclass(frozen=True)
class Narrowed:
    """One such column. `column`: "" where there is one only. `step`: between neighbouring numbers at its size."""

    column: str
    before: str
    after: str
    low: float
    high: float
    step: float
    rows: int
    distinct: int
    left: int
    """Different values afterwards."""
    computed: bool = False
    """It is still held in whole numbers, and loses them where it is computed with."""


def narrowed(before: Any, after: Any) -> Iterator[Narrowed]:
    """The columns that lost values. `before`, `after`: arrays or tensors in the host's memory, (N,) or (N, C)."""
    kind = str(getattr(after, "dtype", "")).removeprefix("torch.")
    wide = _wide(before) if kind in BITS else None
    if wide is None or tuple(after.shape) != tuple(wide.shape):
        return
    narrow = _plain(after[:MOST_ROWS] if len(wide) > MOST_ROWS else after)
    wide = wide[:MOST_ROWS]
    if wide.ndim == 1:
        wide, narrow = wide[:, None], narrow[:, None]
    for i in range(wide.shape[1]):
        found = judged(wide[:, i], narrow[:, i], str(wide.dtype), kind, f"[:, {i}]" if wide.shape[1] > 1 else "")
        if found is not None:
            yield found


def is_converted(value: Any) -> bool:
    """Whether looking at what became of it may tell something: told before anything is read."""
    kind = type(value)
    if kind is list or kind is tuple:
        return len(value) >= FEWEST and type(value[0]) in (int, float)
    if kind is np.ndarray:
        return value.ndim in (1, 2) and len(value) >= FEWEST and value.dtype.kind in "iuf" and value.itemsize >= 4
    return hasattr(value, "to_numpy") and len(value) >= FEWEST


def would_narrow(value: Any) -> Iterator[Narrowed]:
    """The columns of whole numbers that lose values in arithmetic with floats, which makes them float32: of a tensor
    of torch or an array of jax."""
    torch: Any = sys.modules.get("torch")
    if not is_of_jax(value) and (torch is None or type(value) is not torch.Tensor or value.device.type != "cpu"):
        return
    kind = str(value.dtype).removeprefix("torch.")
    shape = tuple(value.shape)
    if kind not in ("int64", "int32", "uint32", "uint64") or len(shape) not in (1, 2) or shape[0] < FEWEST or (
            len(shape) == 2 and not 0 < shape[1] <= MOST_COLUMNS) or shape[0] > MOST_LENGTH:
        return
    wide = _plain(value, keep=True)[:MOST_ROWS]
    columns = wide[:, None] if wide.ndim == 1 else wide
    for i in range(columns.shape[1]):
        column = columns[:, i]
        found = judged(column, column.astype(np.float32).astype(np.float64), kind, "float32",
                       f"[:, {i}]" if columns.shape[1] > 1 else "")
        if found is not None:
            yield replace(found, computed=True)


def judged(before: np.ndarray, after: np.ndarray, kind: str, becomes: str, column: str = "") -> Narrowed | None:
    """One column; `becomes`: the type of what stands in `after` as float64."""
    finite = np.isfinite(after) & np.isfinite(before)
    x, y = before[finite], after[finite]
    if len(x) < FEWEST:
        return None
    low, high = float(x.min()), float(x.max())
    size = max(abs(low), abs(high))
    if size < 2.0 ** BITS[becomes] or (low * high < 0 and x.dtype.kind == "f"):
        return None
    whole = x.dtype.kind in "iu" or bool((x == np.round(x)).all())
    if not whole and high - low > OFFSET * size:
        return None
    distinct, left = len(np.unique(x)), len(np.unique(y))
    if distinct < DISTINCT or left > (1 - LOST) * distinct:
        return None
    step = float(2.0 ** (np.floor(np.log2(size)) + 1 - BITS[becomes]))
    return Narrowed(column, kind, becomes, low, high, step, len(x), distinct, left)


def _wide(value: Any) -> np.ndarray | None:
    """The values before, where they have 64 bits (or 32 of whole numbers) and the shape of a table."""
    if isinstance(value, list | tuple):
        if len(value) < FEWEST or not all(type(v) in (int, float) for v in value[:4]):
            return None
        try:
            value = np.asarray(value)
        except (ValueError, TypeError, OverflowError):
            return None
    if not isinstance(value, np.ndarray) and hasattr(value, "to_numpy"):
        value = value.to_numpy()
    shape: tuple[int, ...] = tuple(getattr(value, "shape", ()))
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if len(shape) not in (1, 2) or shape[0] < FEWEST or (len(shape) == 2 and not 0 < shape[1] <= MOST_COLUMNS):
        return None
    if dtype not in ("float64", "int64", "uint64", "int32", "uint32", "float32"):
        return None
    return value if isinstance(value, np.ndarray) else _plain(value, keep=True)


def _plain(value: Any, keep: bool = False) -> np.ndarray:
    """As numpy's, in float64 unless it is to be kept as it is."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        made: np.ndarray = (value.detach() if keep else value.detach().to(torch.float64)).numpy()
        return made
    return np.asarray(value) if keep else np.asarray(value, np.float64)


class Conversions:
    """What conversions lost, by the line of the program that made them; near the start alone."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int, str], tuple[tuple[str, int], Narrowed]] = {}
        self._spent = Spent(AT_ONCE, SHARE)

    def look(self, before: Any, after: Any, line: tuple[str, int] | None) -> None:
        """A conversion has been made."""
        if line is None or len(self._seen) >= MOST_LINES or not self._spent.open:
            return
        with self._spent.counted():
            for found in narrowed(before, after):
                self._seen.setdefault((*line, found.column), (line, found))

    @property
    def seen(self) -> list[tuple[Place, int, Narrowed]]:
        """File, function and variable (both empty), line, and what was lost."""
        return [((line[0], "", ""), line[1], found) for line, found in self._seen.values()]
