"""Matrices of eight-bit codes beside the real numbers that they were made from: which values came out as other codes.

A code is its value over the scale, plus the zero point, rounded. Scale and zero point of each line are taken from the
inner values, which fit whatever happened to those at the ends: there a code stands at the end of the range
(clipped), or 256 away from where it belongs (wrapped).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.tensor import Tensor, first_rows

MOST_BYTES = 2**26
MOST_VALUES = 2**21
"""Of a matrix that are laid beside their source: those of its first rows."""
MOST_TENSORS = 400
SHORTEST = 32
"""Values of a line from which its scale is taken."""
FITS = 1.0
"""Codes that the typical inner value is off by, at most, where one matrix was made from the other."""
RANGE = 256
_FIRST = 16
"""Codes that a value may be off by at the first attempt."""
_SAMPLE = 4096
_LIKE = 0.8
_STEM = re.compile(r"(?i)[._/](?:q?_?weight|w|kernel|q|int8|uint8|quanti[sz]ed|codes?|data|value)(?=$|[._/])"
                   r"|_(?:q|int8|uint8|quanti[sz]ed|codes?)(?=$|[._/])")
Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coded:
    """A matrix of codes as made from another tensor. `beyond`: values whose code lies outside of the range; `wrapped`,
    `clipped`: those of them that came back at the other end, and that stand at the last code."""

    codes: Tensor
    source: Tensor
    beyond: int
    wrapped: int
    clipped: int
    axis: int | None
    """Whose lines have a scale of their own, None for one scale."""
    zeros: Values
    """The zero points that the codes were made with, one a line."""
    looked: int
    """Values that were looked at."""
    example: tuple[float, int, int]
    """A value that wrapped: in codes as it should be rounded, and the code that stands there; and how many lines."""


def coded_from(one: Checkpoint, other: Checkpoint) -> Iterator[Coded]:
    """The matrices of codes of a file that were made from real numbers of another. Raises UnreadableInput."""
    floats = [t for p in other.parts if not p.auxiliary for t in p.tensors.values()
              if t.floating and t.matrix and t.nbytes <= 8 * MOST_BYTES]
    for tensor in codes_of(one):
        source = _source(tensor, floats)
        made = _made(tensor, source) if source is not None else None
        if made is not None:
            yield made


def codes_of(one: Checkpoint) -> list[Tensor]:
    """The matrices of eight bits of a file."""
    held = [t for p in one.parts if not p.auxiliary for t in p.tensors.values()
            if t.dtype in ("int8", "uint8") and t.matrix and t.size >= SHORTEST**2 and t.nbytes <= MOST_BYTES]
    return held[:MOST_TENSORS]


def stem(name: str) -> str:
    """A name without what says that it is codes or weights."""
    return _STEM.sub("", name)


def _source(tensor: Tensor, floats: Sequence[Tensor]) -> Tensor | None:
    """The tensor of the same shape with the same stem, else the one whose values go with the codes."""
    alike = [t for t in floats if t.shape == tensor.shape]
    called = [t for t in alike if stem(t.name) == stem(tensor.name)]
    if len(called) == 1 or not alike:
        return called[0] if called else None
    codes = _sampled(tensor)
    best = max(alike, key=lambda t: _likeness(codes, _sampled(t)))
    return best if _likeness(codes, _sampled(best)) >= _LIKE else None


def _sampled(tensor: Tensor) -> Values:
    flat = first_rows(tensor, MOST_VALUES).reshape(-1)
    return np.asarray(flat[:: max(1, flat.size // _SAMPLE)], np.float64)


def _likeness(one: Values, other: Values) -> float:
    if not (np.isfinite(one).all() and np.isfinite(other).all()) or not one.std() or not other.std():
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _made(tensor: Tensor, source: Tensor) -> Coded | None:
    """The lines that fit best; None where the codes were not made from the source."""
    codes = np.asarray(first_rows(tensor, MOST_VALUES), np.float64)
    values = np.asarray(first_rows(source, MOST_VALUES), np.float64)
    if not np.isfinite(values).all():
        return None
    tried: list[tuple[float, int | None, Values, Values, Values]] = []
    for axis in (None, 0, codes.ndim - 1):
        lines, given = ((v.reshape(1, -1) if axis is None else np.moveaxis(v, axis, 0).reshape(v.shape[axis], -1))
                        for v in (codes, values))
        if lines.shape[1] >= SHORTEST:
            expected, zeros = _expected(lines, given)
            tried.append((float(np.median(np.abs(expected - lines))), axis, lines, expected, zeros))
    if not tried:
        return None
    off, axis, lines, expected, zeros = min(tried, key=lambda t: t[0])
    if off > FITS:
        return None
    low, high = (-128, 127) if tensor.dtype == "int8" else (0, 255)
    outside = (expected > high + 1) | (expected < low - 1)
    turns = np.rint((expected - lines) / RANGE)
    wrapped = outside & (turns != 0) & (np.abs(expected - lines - RANGE * turns) <= 3 * FITS)
    clipped = outside & ~wrapped & ((lines <= low + 1) | (lines >= high - 1))
    at = np.unravel_index(int(np.argmax(np.where(wrapped, np.abs(expected), 0))), lines.shape)
    return Coded(tensor, source, int(outside.sum()), int(wrapped.sum()), int(clipped.sum()), axis, zeros, codes.size,
                 (float(expected[at]), int(lines[at]), int(wrapped.any(axis=1).sum())))


def _expected(codes: Values, values: Values) -> tuple[Values, Values]:
    """The codes that each line's values should have, and its zero point: by least squares over their inner quarter,
    and once more over all that these explain, wrapped or not."""
    low, high = (np.quantile(values, q, axis=1, keepdims=True) for q in (0.375, 0.625))
    expected, _ = _fitted(codes, values, (values >= low) & (values <= high))
    unwrapped = codes + RANGE * np.rint((expected - codes) / RANGE)
    inside = (codes > codes.min()) & (codes < codes.max())
    return _fitted(unwrapped, values, inside & (np.abs(expected - unwrapped) <= _FIRST))


def _fitted(codes: Values, values: Values, of: NDArray[np.bool_]) -> tuple[Values, Values]:
    count = np.maximum(of.sum(axis=1, keepdims=True), 1)
    mean, codes_mean = (np.where(of, v, 0).sum(axis=1, keepdims=True) / count for v in (values, codes))
    x, y = np.where(of, values - mean, 0), np.where(of, codes - codes_mean, 0)
    slope = (x * y).sum(axis=1, keepdims=True) / np.maximum((x * x).sum(axis=1, keepdims=True), 1e-300)
    zeros = codes_mean - slope * mean
    return slope * values + zeros, np.asarray(zeros.reshape(-1))


FEWEST_VALUES, FEWEST_CODES = 256, 32
"""Of a matrix, and different ones among them: two or three codes are meant."""


def scaled_codes(one: Checkpoint) -> list[Tensor]:
    """The matrices of eight bits beside which real numbers stand that are called their scale."""
    tensors = {t.name: t for p in one.parts if not p.auxiliary for t in p.tensors.values()}
    scaled = {n.rpartition(".")[0] for n, t in tensors.items()
              if t.floating and "scale" in n.rpartition(".")[2].lower()}
    held = [t for n, t in tensors.items() if t.dtype in ("int8", "uint8") and t.matrix
            and n.rpartition(".")[0] in scaled and FEWEST_VALUES <= t.size <= MOST_BYTES]
    return held[:MOST_TENSORS]


def at_ends(codes: Tensor) -> tuple[float, float] | None:
    """Shares of the codes at the lower and the upper end of the range; None where few codes are used."""
    values = codes.load(MOST_BYTES)
    if len(np.unique(values)) < FEWEST_CODES:
        return None
    low, high = (-127, 127) if codes.dtype == "int8" else (0, 255)
    return float((values <= low).mean()), float((values >= high).mean())


def zero_points(one: Checkpoint) -> Mapping[str, Tensor]:
    """The zero points of each matrix of codes, by its name: whole numbers called so, one a line of an outer axis."""
    tensors = {t.name: t for p in one.parts if not p.auxiliary for t in p.tensors.values()}
    found = {}
    for codes in codes_of(one):
        head = codes.name.rpartition(".")[0]
        beside = [t for n, t in tensors.items() if "zero" in n.rpartition(".")[2].lower() and (
            n.rpartition(".")[0] == head or stem(n).startswith(stem(codes.name)))
            and t.size in (codes.shape[0], codes.shape[-1]) and t.size > 1 and max(t.shape) == t.size]
        if len(beside) == 1:
            found[codes.name] = beside[0]
    return found
