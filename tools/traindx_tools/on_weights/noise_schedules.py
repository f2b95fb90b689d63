"""Noise schedules of diffusion: betas by their usual formulas, and the tables that are made of betas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STARTS = (1e-6, 1e-5, 1e-4, 2e-4, 5e-4, 8.5e-4, 1e-3, 1.5e-3, 2e-3)
ENDS = (0.005, 0.01, 0.012, 0.0155, 0.0195, 0.02, 0.03, 0.035, 0.05, 0.1, 0.2, 0.5)
STEPS = (50, 100, 200, 250, 300, 400, 500, 600, 800, 1000, 1500, 2000, 4000)
WORDS: Mapping[str, str] = {
    "linear": "linear", "scaled_linear": "scaled linear", "sqrt_linear": "scaled linear", "quad": "scaled linear",
    "quadratic": "scaled linear", "squaredcos_cap_v2": "cosine", "cosine": "cosine", "cos": "cosine",
    "sigmoid": "sigmoid", "const": "constant", "constant": "constant",
}  # fmt: skip
"""What the schedules are called by diffusers, by latent diffusion and by the code of the papers."""
FORMS = ("linear", "scaled linear", "cosine", "sigmoid")


@dataclass(frozen=True)
class Schedule:
    """`steps`: those that the formula is made for. Start and end say nothing of a cosine."""

    form: str
    start: float
    end: float
    steps: int


def betas(schedule: Schedule) -> Array:
    """Ho et al. 2020 (linear), Rombach et al. 2022 (linear in the root), Nichol and Dhariwal 2021 (cosine)."""
    n, start, end = schedule.steps, schedule.start, schedule.end
    if schedule.form == "cosine":
        t = np.arange(n + 1) / n
        bar = np.cos((t + 0.008) / 1.008 * np.pi / 2) ** 2
        return np.asarray(np.minimum(1 - bar[1:] / bar[:-1], 0.999))
    if schedule.form == "scaled linear":
        return np.asarray(np.linspace(start**0.5, end**0.5, n) ** 2)
    if schedule.form == "sigmoid":
        return np.asarray((end - start) / (1 + np.exp(-np.linspace(-6, 6, n))) + start)
    return np.linspace(start, end, n)


def made_of(beta: Array) -> Iterator[tuple[str, Array]]:
    """The tables that samplers keep, each with its formula."""
    alpha = 1 - beta
    bar: Array = np.asarray(np.cumprod(alpha), np.float64)
    before: Array = np.asarray(np.append(1.0, bar[:-1]), np.float64)
    with np.errstate(all="ignore"):
        yield "beta", beta
        yield "1 - beta", alpha
        yield "the product of 1 - beta", bar
        yield "the product before the step", before
        yield "its root", np.sqrt(bar)
        yield "the root of 1 - product", np.sqrt(1 - bar)
        yield "log(1 - product)", np.log(1 - bar)
        yield "1 / its root", 1 / np.sqrt(bar)
        yield "the root of 1 / product - 1", np.sqrt(1 / bar - 1)
        yield "the variance of the posterior", beta * (1 - before) / (1 - bar)
        yield "the root of 1 - beta", np.sqrt(alpha)
        yield "product / (1 - product)", bar / (1 - bar)


def near(table: Array, made: Array) -> NDArray[np.bool_]:
    """Which values are those of the formula, up to the digits of half precision."""
    with np.errstate(all="ignore"):
        largest = float(np.abs(made[np.isfinite(made)]).max(initial=0))
        return np.asarray(np.abs(table - made) <= 2e-3 * np.abs(made) + 1e-6 * largest)
