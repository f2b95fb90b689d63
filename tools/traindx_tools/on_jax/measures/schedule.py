"""A schedule of optax against a run: how high its rate is at the counts that the run made, and beyond."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

POINTS = 48
FURTHEST = 64
"""Lengths of the run up to which the schedule is asked."""
SAME = 1e-6


@dataclass(frozen=True)
class Course:
    """What a schedule gives. `last`: at the end of the run; `peak`, `peak_at`: the highest, as far as it was asked;
    `end`: the count from which on it stays as it is (None where it goes on), and `rest`: what it is then."""

    last: float
    peak: float
    peak_at: int
    end: int | None
    rest: float
    rising: bool
    """Up to the end of the run it never falls."""


def course(schedule: Callable[[int], Any], made: int) -> Course | None:
    """Asks a schedule at some counts of a run of `made` updates and beyond; None where it gives no numbers."""
    inside = sorted({made * k // POINTS for k in range(POINTS + 1)})
    beyond = sorted({int(made * FURTHEST ** (k / POINTS)) for k in range(1, POINTS + 1)})
    try:
        values = {n: abs(float(schedule(n))) for n in (*inside, *beyond)}
    except Exception:  # noqa: BLE001 - a function of the user's that wants something else
        return None
    counts = sorted(values)
    peak_at = max(counts, key=lambda n: (values[n], -n))
    rest, scale = values[counts[-1]], max(values.values())
    moving = [k for k, n in enumerate(counts) if abs(values[n] - rest) > SAME * scale]
    end = None if scale == 0 or not moving or moving[-1] + 2 >= len(counts) else _end(
        schedule, counts[moving[-1]], counts[moving[-1] + 1], rest, SAME * scale)
    own = [values[n] for n in inside]
    rising = all(b >= a - SAME * scale for a, b in itertools.pairwise(own))
    return Course(values[inside[-1]], values[peak_at], peak_at, end, rest, rising)


def _end(schedule: Callable[[int], Any], low: int, high: int, rest: float, near: float) -> int:
    """The first count at which it is what it stays, between one at which it is not yet and one at which it is."""
    while high - low > 1:
        middle = (low + high) // 2
        if abs(abs(float(schedule(middle))) - rest) > near:
            low = middle
        else:
            high = middle
    return high
