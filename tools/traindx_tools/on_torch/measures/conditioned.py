"""Inputs of a model by a value that they are given with (a time step, a noise level), in training and in generation.

In training the value differs from row to row; in generation all rows of a call have the same one, and it runs from one
end of its range to the other. The first call of each such chain is compared with the rows that training had at that
value: what a network is asked first it must have been trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NEAR = (0.02, 0.05)
"""Shares of the value's range within which rows count as given with the first value; the second where rows are few."""
LEAST_ROWS, LEAST_LEVELS, LEAST_CALLS = 60, 8, 8
SHIFT, SCALE, SIGMAS = 0.1, 1.15, 6.0
"""In units of the input's spread, as a factor of its root mean square, and in standard errors. A linear schedule of
1000 steps leaves 0.6 % of the signal, one of latent diffusion models 7 %: below a tenth of the spread (Lin et al. 2024,
Common Diffusion Noise Schedules and Sample Steps are Flawed)."""
BEYOND = 0.05
"""Of the trained range, by which a first value outside it is beyond it."""


@dataclass(eq=False)
class Seen:
    """Rows of training and calls of generation of one kind of model."""

    values: list[Array] = field(default_factory=list)
    """Of shape (B,) each, of training calls."""
    features: list[Array] = field(default_factory=list)
    """Of shape (B, D) each: columns, or means of channels."""
    squares: list[Array] = field(default_factory=list)
    """Of shape (B,) each: the mean square of a row."""
    calls: list[tuple[float, Array, Array, int]] = field(default_factory=list)
    """Value, features, squares and step of each call of generation."""
    rows: int = 0


@dataclass(frozen=True)
class Start:
    """What generations begin from against what training had there. `kind`: "mean", "scale" or "beyond"."""

    kind: str
    value: float
    low: float
    high: float
    shift: float
    """Largest difference of a mean, in units of the input's spread in training at that value."""
    column: int
    given: float
    trained: float
    """The two means (kind "mean"), root mean squares ("scale")."""
    rows: int
    trained_rows: int
    step: int
    """Of the first generation."""


def judged(seen: Seen) -> Start | None:
    """What is wrong with the first call of generations; None where nothing is or too little was seen."""
    if not seen.values or len(seen.calls) < LEAST_CALLS:
        return None
    values = np.concatenate(seen.values)
    low, high = float(values.min()), float(values.max())
    if len(np.unique(values)) < LEAST_LEVELS or high <= low:
        return None
    starts = _starts(seen.calls, high - low)
    if not starts:
        return None
    first = float(np.median([s[0] for s in starts]))
    features, squares = np.concatenate([s[1] for s in starts]), np.concatenate([s[2] for s in starts])
    base = Start("", first, low, high, 0.0, 0, first, 0.0, len(features), len(values), starts[0][3])
    if first > high + BEYOND * (high - low) or first < low - BEYOND * (high - low):
        return replace(base, kind="beyond", trained=high if first > high else low)
    for near in NEAR:
        at = np.abs(values - first) <= near * (high - low)
        if min(at.sum(), len(features)) >= LEAST_ROWS:
            return _apart(np.concatenate(seen.features)[at], np.concatenate(seen.squares)[at], features, squares,
                          replace(base, trained_rows=int(at.sum())))
    return None


def _starts(calls: Sequence[tuple[float, Array, Array, int]], span: float) -> list[tuple[float, Array, Array, int]]:
    """The first call of each chain: the first of all, and those that jump back against the chain's direction."""
    steps = np.diff([c[0] for c in calls])
    moving = steps[steps != 0]
    if len(moving) < LEAST_CALLS - 1:
        return []
    way = np.sign(np.median(moving))
    if (np.sign(moving) == way).mean() < 0.8:  # no chain: values in any order
        return []
    back = [i + 1 for i, s in enumerate(steps) if s * way < -0.3 * span]
    return [calls[i] for i in (0, *back)]


def _apart(trained: Array, trained_squares: Array, given: Array, squares: Array, base: Start) -> Start | None:
    spread = float(np.sqrt(max(trained_squares.mean() - (trained.mean(0) ** 2).mean(), 1e-12)))
    difference = given.mean(0) - trained.mean(0)
    error = np.sqrt(given.var(0) / len(given) + trained.var(0) / len(trained)) + 1e-12
    column = int(np.argmax(np.abs(difference)))
    shift = float(abs(difference[column]) / spread)
    if shift >= SHIFT and abs(difference[column]) >= SIGMAS * error[column]:
        return replace(base, kind="mean", shift=shift, column=column, given=float(given[:, column].mean()),
                       trained=float(trained[:, column].mean()))
    one, two = float(np.sqrt(squares.mean())), float(np.sqrt(trained_squares.mean()))
    noise = np.sqrt(squares.var() / len(squares) + trained_squares.var() / len(trained_squares)) + 1e-12
    far = abs(squares.mean() - trained_squares.mean()) >= SIGMAS * noise
    if far and max(one, two) >= SCALE * min(one, two):
        return replace(base, kind="scale", shift=shift, given=one, trained=two)
    return None
