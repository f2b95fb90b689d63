"""From the distances that parameters went between looks: whether they stopped, since when, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST, FEWEST_LOOKS, SHARE = 10, 3, 0.1
"""Calls and looks without movement, and calls as a share of all, from which it is no end of a schedule."""
SMALL = 1e-4
"""Of the usual update: a learning rate that is left as a remainder."""
TIMES = 2.0
"""Times the longest pause before: gradients that are accumulated move the parameters in some calls alone."""


@dataclass(frozen=True)
class Standstill:
    """Parameters that moved until `moved`, the last look at which they did, and not from `since` to `last` (calls).

    `usual`, `left`: median of the sampled norm of the update a call, before and since; `left` is 0 where nothing moves.
    """

    moved: int
    since: int
    last: int
    usual: float
    left: float
    pieces: slice
    """The looks without movement, as differences between one look and the next."""


def standstill(steps: Sequence[int], changes: NDArray[np.float64]) -> Standstill | None:
    """From the calls of the looks, and the norm of the change between each two (one fewer); None where they move."""
    calls = np.diff(np.asarray(steps, np.float64))
    if len(calls) < FEWEST_LOOKS + 1 or not np.isfinite(changes).all():
        return None
    paces = changes / calls
    moving = paces[paces > 0]
    if not len(moving):
        return None
    usual = float(np.median(moving[: max(1, len(moving) // 2)]))
    still = paces <= SMALL * usual
    if not still[-1]:
        return None
    first = int(np.flatnonzero(~still)[-1]) + 1
    length = steps[-1] - steps[first]
    if len(calls) - first < FEWEST_LOOKS or length < max(FEWEST, SHARE * steps[-1]):
        return None
    if length < TIMES * _longest(still[:first], calls[:first]):
        return None
    return Standstill(steps[first - 1], steps[first], steps[-1], usual, float(np.median(paces[first:])),
                      slice(first, len(calls)))


def _longest(still: NDArray[np.bool_], calls: NDArray[np.float64]) -> float:
    """The longest pause among looks that came before, in calls."""
    longest = run = 0.0
    for rests, count in zip(still, calls, strict=True):
        run = run + float(count) if rests else 0.0
        longest = max(longest, run)
    return longest


def rounds(gaps: Sequence[int]) -> int | None:
    """The calls of the training between two calls of others: steps of an epoch. None where they are not regular."""
    if len(gaps) < 3:
        return None
    usual = int(np.median(gaps))
    return usual if usual > 1 and np.mean([g == usual for g in gaps]) >= 0.8 else None
