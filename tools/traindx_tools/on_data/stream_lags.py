"""Recordings in which one stream goes along with the others only after it is moved by some rows.

A ridge regression on the other recordings says a stream of each row from the other streams of that row, and from how
these change around it. Its errors are held against the same with the stream moved by some rows. In most recordings they
are the least as stored; where a stream lags they are the least, and as small as elsewhere, after moving it back.
Means and trends of a recording are taken out of its errors, so that a level of its own does not look like a lag.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.recordings import SHORTEST, Recording
from traindx_tools.on_data.significance import LEVEL, student_tail

REACH = 8
"""Rows by which a stream is moved at most; a lag that is told is smaller."""
TOLD = 0.1
"""Share of the variance that the other streams tell of a stream, in the typical recording."""
USUAL = 0.7
"""Share of the recordings whose errors are the least as stored."""
AS_GOOD = 0.6
"""Of the typical share told, what is told after moving."""
LEFT, ERRORS = 0.8, 0.7
"""Of that, the most that may be told as stored; or of the errors as stored, the most that are left after moving."""
FLOOR, MOST = 1e-3, 3.0
"""Share of the variance below which errors are none, and the logarithm of a ratio of errors that counts at most."""
RIDGE = 1e-3
MOST_ROWS, MOST_TOTAL = 5000, 24_000
"""Rows of a recording, and of all of them, that are looked at."""
MOST_TELLING = 40
"""Features that tell a stream."""


@dataclass(frozen=True, eq=False)
class Lag:
    """A stream of a recording that stands `by` rows too late against the others; negative: too early."""

    recording: Recording
    stream: str
    by: int
    before: float
    after: float
    """Share of its variance that the other streams tell, as stored and after moving it back."""
    typical: float
    log_chance: float


def lags_of(family: Sequence[Recording]) -> list[Lag]:
    """The recordings with a stream that lags, by the stream that tells most of them."""
    best: list[Lag] = []
    names = sorted(family[0].streams)
    for name in names:
        found = _of_stream(family, name, len(names))
        if sum(one.log_chance for one in found) < sum(one.log_chance for one in best):
            best = found
    return best


def _of_stream(family: Sequence[Recording], name: str, tries: int) -> list[Lag]:
    rows = min(MOST_ROWS, max(SHORTEST, MOST_TOTAL // len(family)))
    both = [sides(r, name, rows) for r in family]
    xs, ys = _scaled([x for x, _ in both]), _scaled([y for _, y in both])
    if xs is None or ys is None:
        return []
    inner = [slice(REACH + 1, len(x) - REACH - 1) for x in xs]
    grams = [(x[i].T @ x[i], x[i].T @ y[i]) for x, y, i in zip(xs, ys, inner, strict=True)]
    gram, cross = sum(g for g, _ in grams), sum(c for _, c in grams)
    seen = []
    for x, y, (own, mine) in zip(xs, ys, grams, strict=True):
        left = gram - own
        weights = np.linalg.solve(left + RIDGE * (np.trace(left) / len(left)) * np.eye(len(left)), cross - mine)
        seen.append(_errors(x @ weights, y))
    return _judged(family, name, seen, tries)


def sides(recording: Recording, name: str, rows: int) -> tuple[Array, Array]:
    """What tells, with its changes to the next and from the last row, and what is told."""
    rest = np.concatenate([v for n, v in sorted(recording.streams.items()) if n != name], axis=1)[:rows]
    if rest.shape[1] > MOST_TELLING:
        rest = rest[:, np.linspace(0, rest.shape[1] - 1, MOST_TELLING).astype(np.int64)]
    ahead, behind = np.zeros_like(rest), np.zeros_like(rest)
    ahead[:-1], behind[1:] = np.diff(rest, axis=0), np.diff(rest, axis=0)
    return np.concatenate([rest, ahead, behind], axis=1), recording.streams[name][:rows]


def _scaled(parts: Sequence[Array]) -> list[Array] | None:
    """On one scale, without features that never vary."""
    every = np.concatenate(parts)
    spread = every.std(axis=0)
    kept = spread > 1e-9 * np.maximum(1.0, np.abs(every).max(axis=0))
    if not kept.any():
        return None
    centre = every.mean(axis=0)
    return [np.clip((p[:, kept] - centre[kept]) / spread[kept], -6.0, 6.0) for p in parts]


@dataclass(frozen=True, eq=False)
class _Errors:
    """Of one recording: shape (2 REACH + 1, rows) squared errors of each row by move, and what the stream varies by."""

    squares: Array
    variance: float

    @property
    def told(self) -> Array:
        """Share of the variance that is told, by move."""
        return np.asarray(1.0 - self.squares.mean(axis=1) / max(1e-12, self.variance))

    @property
    def best(self) -> int:
        """The move with the least errors: row t of the stream belongs to row t + best of the others."""
        return int(self.squares.mean(axis=1).argmin()) - REACH


def _errors(said: Array, y: Array) -> _Errors:
    rows = slice(REACH, len(y) - REACH)
    trend = _trend(rows.stop - rows.start)
    squares = []
    for move in range(-REACH, REACH + 1):
        left = y[rows] - said[REACH + move:len(y) - REACH + move]
        squares.append((_without_trend(left, *trend) ** 2).mean(axis=1))
    return _Errors(np.stack(squares), float((_without_trend(y[rows], *trend) ** 2).mean()))


def _trend(rows: int) -> tuple[Array, Array]:
    """A level and a slope over the rows, shape (rows, 2), and the sums of their squares, shape (2, 1)."""
    times = np.arange(rows)
    x = np.stack([np.ones(rows), times - times.mean()], axis=1)
    return x, (x**2).sum(axis=0)[:, None]


def _without_trend(values: Array, x: Array, sums: Array) -> Array:
    return np.asarray(values - x @ ((x.T @ values) / sums))


def _judged(family: Sequence[Recording], name: str, seen: Sequence[_Errors], tries: int) -> list[Lag]:
    usual = [s for s in seen if s.best == 0]
    if len(usual) < max(USUAL * len(seen), min(4, len(seen) - 1)):
        return []
    typical = float(np.median([s.told[REACH] for s in usual]))
    if typical < TOLD:
        return []
    out = []
    for recording, one in zip(family, seen, strict=True):
        move = one.best
        before, after = float(one.told[REACH]), float(one.told[REACH + move])
        if move == 0 or abs(move) == REACH or after < AS_GOOD * typical or min(
                before - LEFT * after, 1.0 - after - ERRORS * (1.0 - before)) > 0.0:
            continue
        errors = [np.log(one.squares[REACH + m] + FLOOR * one.variance) for m in (0, move)]
        chance = chance_of(np.clip(errors[0] - errors[1], -MOST, MOST))
        chance += math.log(len(seen) * tries * 2.0 * REACH)
        if chance < math.log(LEVEL):
            out.append(Lag(recording, name, -move, before, after, typical, chance))
    return out


def chance_of(gain: Array) -> float:
    """Log of the chance of a mean gain so large, where neighbouring rows are alike."""
    moves = gain[1:].std() > 0 and gain[:-1].std() > 0
    near = float(np.corrcoef(gain[1:], gain[:-1])[0, 1]) if moves else 0.0
    near = min(0.95, max(0.0, near))
    worth = max(3.0, len(gain) * (1.0 - near) / (1.0 + near))
    t = float(gain.mean()) / max(1e-12, float(gain.std())) * math.sqrt(worth)
    return math.log(max(student_tail(t, worth - 1.0), 1e-300)) if t > 0 else 0.0
