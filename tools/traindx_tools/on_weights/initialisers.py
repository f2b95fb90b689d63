"""The distributions that initialisers draw from, and whether a tensor is still one of them to the last digit.

A uniform or a cut normal distribution has a bound that no value passes and that the largest comes near: n values leave
a gap of about bound/n. Training moves values across it, so this is a sharp test. A normal distribution has no bound:
its standard deviation is known to 0.7/sqrt(n) only, and it counts where other tensors are not at it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from traindx_tools.on_weights.statistics import Stats

FEWEST = 256
"""Values below which no distribution is told."""
_TRUNCATED = 0.8796256610342398
"""Standard deviation of a standard normal distribution that is cut at two: jax.nn.initializers, TensorFlow."""
_RESOLUTION = {"float64": 1e-7, "float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}
"""Relative rounding of the type in which the values lie."""


@dataclass(frozen=True)
class Drawn:
    """An initialiser that a tensor still agrees with by its bound, which chance does not meet."""

    name: str


def fans(shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """(fan in, fan out) as torch has it (out, in, kernel), and as jax has it (kernel, in, out)."""
    if len(shape) < 2:
        return ()
    torch_kernel, jax_kernel = math.prod(shape[2:]), math.prod(shape[:-2])
    return ((shape[1] * torch_kernel, shape[0] * torch_kernel), (shape[-2] * jax_kernel, shape[-1] * jax_kernel))


def _uniform_bounds(shape: tuple[int, ...]) -> dict[str, float]:
    out: dict[str, float] = {}
    for fan_in, fan_out in fans(shape):
        out |= {f"uniform(1/sqrt({fan_in}))": fan_in**-0.5, f"kaiming uniform({fan_in})": (6 / fan_in) ** 0.5,
                f"xavier uniform({fan_in}, {fan_out})": (6 / (fan_in + fan_out)) ** 0.5,
                f"lecun uniform({fan_in})": (3 / fan_in) ** 0.5}  # fmt: skip
    return out | ({f"uniform(1/sqrt({shape[0] // 4}))": (shape[0] // 4) ** -0.5} if shape[0] >= 4 else {})


def _cut_bounds(shape: tuple[int, ...]) -> dict[str, float]:
    out: dict[str, float] = {}
    for fan_in, fan_out in fans(shape):
        out |= {f"lecun normal({fan_in})": fan_in**-0.5, f"he normal({fan_in})": (2 / fan_in) ** 0.5,
                f"glorot normal({fan_in}, {fan_out})": (2 / (fan_in + fan_out)) ** 0.5}  # fmt: skip
    return {name: 2 * deviation / _TRUNCATED for name, deviation in out.items()}


def deviations(shape: tuple[int, ...]) -> dict[str, float]:
    """Standard deviations of the usual normal initialisers for a shape."""
    out = {"normal(0.02)": 0.02, "normal(0.01)": 0.01, "normal(1)": 1.0}
    for fan_in, fan_out in fans(shape):
        out |= {f"kaiming normal({fan_in})": (2 / fan_in) ** 0.5, f"kaiming normal({fan_out})": (2 / fan_out) ** 0.5,
                f"xavier normal({fan_in}, {fan_out})": (2 / (fan_in + fan_out)) ** 0.5,
                f"lecun normal({fan_in})": fan_in**-0.5}  # fmt: skip
    return out


def sharply_drawn(stats: Stats) -> Drawn | None:
    """The bounded initialiser that a tensor is still a draw of, or None."""
    if stats.finite < stats.size:
        return None
    return bounded_draw(stats.tensor.shape, stats.tensor.dtype, stats.low, stats.high, stats.rms)


def bounded_draw(shape: tuple[int, ...], dtype: str, low: float, high: float, rms: float) -> Drawn | None:
    """The bounded initialiser of which a tensor with these values is still a draw, or None.

    `low`, `high`: its least and its largest value; `rms`: the root of the mean square; all of its values are finite.
    """
    n, digits = math.prod(shape), _RESOLUTION.get(dtype)
    if n < FEWEST or digits is None or low >= 0 or high <= 0:
        return None
    largest = max(-low, high)
    for name, bound in _uniform_bounds(shape).items():
        error = 5 * 0.45 / n**0.5 + digits
        if _reaches(largest, bound, 12 / n, digits) and abs(rms * 3**0.5 / bound - 1) < error:
            return Drawn(name)
    for name, bound in _cut_bounds(shape).items():  # few values lie near two deviations
        deviation = bound * _TRUNCATED / 2
        if _reaches(largest, bound, 60 / n, digits) and abs(rms / deviation - 1) < 5 * 0.6 / n**0.5 + digits:
            return Drawn(name)
    return None


def _reaches(largest: float, bound: float, gap: float, digits: float) -> bool:
    return bound * (1 - gap - digits) <= largest <= bound * (1 + digits)


def errors_from(stats: Stats, deviation: float) -> float:
    """By how many standard errors the root mean square differs from that of a normal draw."""
    return float(abs(stats.rms / deviation - 1) * math.sqrt(2 * stats.size))


def normally_drawn(stats: Stats) -> tuple[str, float] | None:
    """The normal initialiser that a tensor agrees with to three standard errors, and its deviation; or None."""
    if stats.size < 1024 or stats.finite < stats.size or abs(stats.mean) > (
            5 * stats.rms / len(stats.sample)**0.5):
        return None
    if abs(stats.kurtosis - 3) > 5 * (24 / max(1, len(stats.sample))) ** 0.5:
        return None
    near = {n: d for n, d in deviations(stats.tensor.shape).items() if errors_from(stats, d) < 3}
    return next(iter(near.items()), None)
