"""How targets stand to inputs: tokens of the same sequence some places on, or a column of the input itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FITS, SHIFTS, POSITIONS = 0.99, range(-2, 5), 64
COLUMN_ROWS = 64


@dataclass(frozen=True)
class TargetShift:
    """`target[t] == input[t + shift]` for the share `fits` of `positions` places."""

    shift: int
    fits: float
    positions: int


def target_shift(ids: NDArray[np.int64], target: NDArray[np.int64], ignored: int | None) -> TargetShift | None:
    """The shift that fits, of ids (rows, T) and targets (rows, S) with S = T or up to two fewer.

    Targets that were cut are those of the first positions or of the last ones; both are tried as they are aligned
    with the outputs of the first S inputs. None where none fits, or several do (text that repeats itself).
    """
    if ids.ndim != 2 or target.ndim != 2 or len(ids) != len(target) or not 0 <= ids.shape[1] - target.shape[1] <= 3:
        return None
    counted = np.ones_like(target, bool) if ignored is None else target != ignored
    found = []
    for shift in SHIFTS:
        t = np.arange(target.shape[1])
        inside = (t + shift >= 0) & (t + shift < ids.shape[1])
        ok = counted[:, inside]
        if ok.sum() < POSITIONS:
            continue
        equal = (target[:, inside] == ids[:, (t + shift)[inside]])[ok]
        if equal.mean() >= FITS:
            found.append(TargetShift(shift, float(equal.mean()), int(ok.sum())))
    return found[0] if len(found) == 1 else None


def column_of(x: NDArray[np.float64], label: NDArray[np.float64]) -> tuple[int, float] | None:
    """The column of the input that is the target, and the factor between them; None where there is none, or where a
    constant would do. `x` (rows, columns), `label` (rows,)."""
    known = np.isfinite(label) & np.isfinite(x).all(1)
    if known.sum() < COLUMN_ROWS or len(np.unique(label[known])) < 2:
        return None
    y, rows = label[known], x[known]
    centred, yc = rows - rows.mean(0), y - y.mean()
    scale = np.sqrt((centred**2).sum(0) * (yc**2).sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.where(scale > 0, (centred * yc[:, None]).sum(0) / scale, 0.0)
    k = int(np.argmax(np.abs(r)))
    if abs(r[k]) < 1 - 1e-9 * 1e3:
        return None
    return k, float((centred[:, k] * yc).sum() / (yc**2).sum())
