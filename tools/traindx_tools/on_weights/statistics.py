"""What one pass over a tensor tells: extremes, sums by row, a sample; the rest is asked of these.

The pass is what reading costs, and little more: smallest, largest, and sum of squares by row, on chunks that lie in the
cache. The mean, shares (zeros, denormals, rounding) and the shape of the distribution come from a sample of
`SAMPLE` values that are spread over the whole tensor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_code.answers import Keeps
from traindx_tools.on_data.summary import mixed
from traindx_tools.on_weights.tensor import Tensor, as_numbers

if TYPE_CHECKING:
    from traindx_tools.on_weights.columns import Columns

SAMPLE = 8_192
"""Values of a tensor of which the distribution is looked at: a share of one percent is seen to a tenth of itself."""
MOST_ROWS = 2_000_000
"""Rows that are told apart; a matrix with more is taken for a vector."""
SEGMENTS = 16
"""Parts of equal height into which the rows are summed up."""
SMALLEST_NORMAL = {"float64": 2.2250738585072014e-308, "float32": 1.1754943508222875e-38,
                   "bfloat16": 1.1754943508222875e-38, "float16": 6.103515625e-05, "float8_e4m3fn": 2.0**-6,
                   "float8_e5m2": 2.0**-14}  # fmt: skip
"""Below: subnormal, with fewer digits (IEEE 754; Micikevicius et al. 2022 for the 8-bit types)."""


@dataclass
class Stats(Keeps):
    """What was measured of one tensor. Norms and moments are of its finite values."""

    tensor: Tensor
    low: float = math.inf
    high: float = -math.inf
    nan: int = 0
    inf: int = 0
    first_bad: int = -1
    """Index of the first value that is not finite, in the order of storage."""
    row_squares: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    row_prints: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    """A few stored values of each row, bit by bit; empty where rows are not told apart."""
    sample: NDArray[np.floating] = field(default_factory=lambda: np.zeros(0, np.float32))
    stored_sample: NDArray[np.generic] = field(default_factory=lambda: np.zeros(0, np.float32))

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def size(self) -> int:
        return self.tensor.size

    @property
    def finite(self) -> int:
        """How many values are numbers."""
        return self.size - self.nan - self.inf

    @cached_property
    def squares(self) -> float:
        """The sum of squares."""
        return float(self.row_squares.sum())

    @cached_property
    def mean(self) -> float:
        """Mean of the sample."""
        values = self.sample[np.isfinite(self.sample)]
        return float(values.mean(dtype=np.float64)) if len(values) else 0.0

    @cached_property
    def rms(self) -> float:
        """Root of the mean square."""
        return math.sqrt(self.squares / max(1, self.finite))

    @cached_property
    def deviation(self) -> float:
        """Standard deviation."""
        return math.sqrt(max(0.0, self.squares / max(1, self.finite) - self.mean**2))

    @property
    def largest(self) -> float:
        """The largest magnitude of a finite value."""
        return max(abs(self.low), abs(self.high)) if self.finite else 0.0

    @property
    def constant(self) -> bool:
        """Whether all values are the same number."""
        return self.finite == self.size > 0 and self.low == self.high

    @cached_property
    def zero_rows(self) -> NDArray[np.intp]:
        """Rows of zeros only, of a matrix that has other rows."""
        if not self.tensor.matrix or len(self.row_squares) < 2 or self.nan or self.inf:
            return np.zeros(0, np.intp)
        return np.flatnonzero(self.row_squares == 0)

    @cached_property
    def norms(self) -> NDArray[np.float64]:
        """Norm of each row."""
        return np.sqrt(self.row_squares)

    @cached_property
    def row_keys(self) -> NDArray[np.uint64]:
        """Of each row, from its norm and a few of its bits: rows of other keys differ, those of one key may be equal.

        A norm alone does not do: float32 has so few of them that some of any two thousand rows share one.
        """
        prints = self.row_prints if len(self.row_prints) else np.zeros(len(self.row_squares), np.uint64)
        return np.asarray(mixed(self.row_squares.view(np.uint64) + np.uint64(1)) ^ prints)

    @cached_property
    def kurtosis(self) -> float:
        """Fourth standardised moment of the sample: 3 for a normal distribution, 1.8 for a uniform one."""
        x = self.sample.astype(np.float64)
        x = x[np.isfinite(x)] - (x[np.isfinite(x)].mean() if np.isfinite(x).any() else 0.0)
        square = float((x**2).mean()) if len(x) else 0.0
        return float((x**4).mean()) / square**2 if square > 0 else math.nan

    @cached_property
    def zero_share(self) -> float:
        """Share of values of the sample that are 0."""
        return float((self.sample == 0).mean()) if len(self.sample) else 0.0

    @cached_property
    def denormal_share(self) -> float:
        """Share of values of the sample that are not 0 and below the smallest normal number of the type."""
        normal = SMALLEST_NORMAL.get(self.tensor.dtype)
        if normal is None or not len(self.sample):
            return 0.0
        return float(((self.sample != 0) & (np.abs(self.sample.astype(np.float64)) < normal)).mean())

    @cached_property
    def rounded_to(self) -> str:
        """The narrower type to which float32 values were rounded ("bfloat16", "float16"), "" for none."""
        stored = self.stored_sample
        if self.tensor.dtype != "float32" or len(stored) < 64 or self.constant:
            return ""
        values = stored[(stored != 0) & (np.abs(stored) < 6e4)]
        if len(values) < 64:
            return ""
        bits = values.view(np.uint32)
        if not (bits & 0xFFFF).any():
            return "bfloat16"
        return "float16" if (values.astype(np.float16).astype(np.float32) == values).all() else ""

    @cached_property
    def columns(self) -> Columns:
        """Sums of squares and keys of the second axis, from a few rows."""
        from traindx_tools.on_weights.columns import sampled_columns

        return sampled_columns(self.tensor)

    @cached_property
    def profile(self) -> NDArray[np.float64]:
        """Root mean square of `SEGMENTS` equal parts of the rows, from the first to the last."""
        rows = len(self.row_squares)
        if rows < SEGMENTS or rows % SEGMENTS:
            return np.zeros(0)
        width = self.size // rows * (rows // SEGMENTS)
        return np.asarray(np.sqrt(self.row_squares.reshape(SEGMENTS, -1).sum(1) / width))


def measure(tensor: Tensor) -> Stats:
    """One pass over a tensor. Raises UnreadableInput where the file ends too early."""
    stats = Stats(tensor)
    rows = tensor.rows if tensor.matrix and tensor.rows <= MOST_ROWS else 1
    stats.row_squares = np.zeros(rows)
    width = tensor.size // rows if rows else 0
    places = _print_places(width, tensor.itemsize) if rows > 1 else range(0)
    stats.row_prints = np.zeros(rows if places else 0, np.uint64)
    step = max(1, tensor.size // SAMPLE)
    at, samples = 0, []
    with np.errstate(all="ignore"):
        for stored in tensor.raw():
            values = as_numbers(stored, tensor.dtype)
            offset = -at % step
            samples.append(stored[offset::step].copy())
            _add(stats, values, at, width)
            if places:
                _print_rows(stats.row_prints, stored, at, width, places)
            at += len(stored)
    if samples:
        stats.stored_sample = np.concatenate(samples)
        stats.sample = as_numbers(stats.stored_sample, tensor.dtype)  # type: ignore[assignment]
    return stats


def _print_places(width: int, itemsize: int) -> range:
    """As many places in a row as eight bytes hold, or none where a row is shorter."""
    count = 8 // itemsize
    step = width // count
    return range(step // 2, step // 2 + count * step, step) if step else range(0)


def _print_rows(prints: NDArray[np.uint64], stored: NDArray[np.generic], at: int, width: int,
                places: range) -> None:
    """Keeps the values at `places` of the rows of a chunk from the value `at` on: whole rows, or a part of one."""
    if at % width == 0 and len(stored) % width == 0:
        table = stored.reshape(-1, width)
        own = table[:, places.start: places.stop: places.step]
        prints[at // width: at // width + len(table)].view(stored.dtype).reshape(own.shape)[:] = own
        return
    one = prints[at // width: at // width + 1].view(stored.dtype)
    for index, place in enumerate(places):
        if 0 <= place - at % width < len(stored):
            one[index] = stored[place - at % width]


def _row_squares(table: NDArray[np.floating] | NDArray[np.integer]) -> NDArray[np.floating]:
    """The sum of squares of each row, the same for equal rows."""
    if hasattr(np, "vecdot"):  # numpy 2: twice as fast
        return np.asarray(np.vecdot(table, table))
    return np.asarray(np.einsum("ij,ij->i", table, table))


def _add(stats: Stats, values: NDArray[np.floating] | NDArray[np.integer], at: int, width: int) -> None:
    """Adds a chunk that begins at the value `at`: whole rows, or a part of one."""
    low, high = float(np.minimum.reduce(values)), float(np.maximum.reduce(values))  # NaN where one is
    if not (math.isfinite(low) and math.isfinite(high)):
        values = _without_bad(stats, values, at)
        low, high = (float(values.min()), float(values.max())) if values.any() else (0.0, 0.0)
    stats.low, stats.high = min(stats.low, low), max(stats.high, high)
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    first, count = at // width, len(values) // width
    table = values.reshape(count, width) if count and at % width == 0 and len(values) % width == 0 else values[None]
    squares = _row_squares(table)
    if not math.isfinite(np.add.reduce(squares)) or (table.dtype == np.float32 and 0 < max(-low, high) < 1e-18):
        wide = table.astype(np.float64)
        squares = _row_squares(wide)
    span = slice(first, first + len(table))
    stats.row_squares[span] += squares


def _without_bad(stats: Stats, values: NDArray[np.floating] | NDArray[np.integer], at: int
                 ) -> NDArray[np.floating]:
    """The chunk with 0 for what is not finite, which is counted."""
    nan = np.isnan(values)
    bad = nan | np.isinf(values)
    stats.nan += int(nan.sum())
    stats.inf += int(bad.sum() - nan.sum())
    if stats.first_bad < 0:
        stats.first_bad = at + int(np.argmax(bad))
    return np.where(bad, 0, values)
