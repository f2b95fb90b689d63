"""Held-out metrics that stand still from some record on, to the last digit, after they had moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.curves.baselines import Curve, curve, drop, trend
from traindx_tools.on_logs.curves.learning import main_loss
from traindx_tools.on_logs.run import Floats, Run

RECORDS, DIGITS, ABRUPT, TIMES, SHARE = 5, 3, 10.0, 3.0, 0.8
FALL, TREND = 0.02, 2.0
MOST_DECIMALS = 12


@dataclass(frozen=True)
class Standing:
    """Where `curve` stands from record `first` on. `metrics`: of so many, `still` of them stand as long."""

    curve: Curve
    first: int
    still: int
    metrics: int


def standing(curves: Sequence[Curve], fine: Sequence[Curve]) -> Standing | None:
    """The one of `fine` that stands longest, where nearly all of `curves` stand; None where they do not.

    A metric that converges comes to rest by steps of its last digits; one that is not computed anew, or of parameters
    that no longer move, breaks off.
    """
    found = [(c, first) for c in fine if (first := stands_from(c.values)) is not None]
    if not found:
        return None
    c, first = min(found, key=lambda f: f[1] - len(f[0]))
    rest = len(c) - first
    telling = [o for o in curves if not _saturated(o.values)]
    still = sum(len(o) >= rest and not np.ptp(o.values[len(o) - rest + 1:]) for o in telling)
    return Standing(c, first, still, len(telling)) if still >= SHARE * len(telling) else None


def stands_from(values: Floats) -> int | None:
    """The first record of an abrupt standstill that lasts to the end; None where there is none."""
    if len(values) < RECORDS + 2 or not np.isfinite(values).all():
        return None
    moves = np.flatnonzero(np.diff(values))
    if len(moves) < 2 or _saturated(values):
        return None
    first = int(moves[-1]) + 1
    rest, longest = len(values) - first, int(np.diff(np.r_[-1, moves]).max())
    last_move = abs(float(values[first] - values[first - 1]))
    if rest < max(RECORDS, TIMES * longest) or last_move < ABRUPT * _unit(values):
        return None
    return first


def _saturated(values: Floats) -> bool:
    return len(values) > 0 and float(values[-1]) in (0.0, 1.0, 100.0)


def _unit(values: Floats) -> float:
    """One in the last digit that the log prints: the most decimals of any value, to DIGITS of the largest at least."""
    told = [f"{v:.{MOST_DECIMALS}f}".rstrip("0") for v in values[:200].tolist()]
    decimals = max(len(t.split(".")[1]) for t in told)
    digits = f"{abs(float(values[-1])):.9e}".split("e")
    coarsest = float(10.0 ** (int(digits[1]) - DIGITS + 1))
    return max(10.0 ** -decimals, coarsest / 10.0)


def training_since(run: Run, standing: Standing) -> str:
    """Whether the training loss goes on "falling" beside it, is "flat", or is "unknown"."""
    loss = main_loss(run)
    c = curve(loss) if loss is not None else None
    if c is None or len(c) < RECORDS:
        return "unknown"
    share = standing.first / len(standing.curve)
    later = c.values[int(np.ceil(share * len(c))):]
    if len(later) < RECORDS:
        return "unknown"
    return "falling" if drop(later) > FALL and trend(later) < -TREND else "flat"
