"""A noise schedule among the program's variables: the share of noise of each step, and what is left of the signal.

Found by its numbers and then by a name: an array that is the running product of one minus another (or of another), as
`alphas_cumprod = cumprod(1 - betas)`, where one of both is called as such arrays are. Survival curves and discounts are
such products too, and are called otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from traindx_tools.on_variables.visiting import is_float_array, visit

FEWEST, MOST_STEPS = 8, 20_000
MOST_ARRAYS = 60
CLOSE = 2e-3
SECONDS = 0.1
_NAMED = re.compile(r"beta|alpha|a_?bar|noise|sigma|snr|diffus", re.IGNORECASE)


@dataclass(frozen=True)
class NoiseSchedule:
    """What is left of the signal's variance after the last step, and where that stands."""

    file: str
    path: str
    steps: int
    left: float
    first: float
    """The share of noise of the first step, and of the last."""
    last: float


def schedules(seconds: float = SECONDS) -> Iterator[NoiseSchedule]:
    """The schedules among the variables, each array once."""
    held = [(v.file, v.path, v.taken) for v, _ in zip(visit(_steps, seconds), range(MOST_ARRAYS), strict=False)]
    told: set[str] = set()
    for (_, noise_path, noise), (file, path, left) in permutations(held, 2):
        if path not in told and (_NAMED.search(path) or _NAMED.search(noise_path)) and (
                (beta := _made_of(left, noise)) is not None):
            told.add(path)
            yield NoiseSchedule(file, path, len(left), float(left[-1]), float(beta[0]), float(beta[-1]))


def _steps(value: Any) -> np.ndarray[Any, Any] | None:
    """float64 shape (steps,), of an array of one axis with values between 0 and 1; None of anything else."""
    if not is_float_array(value) or value.ndim != 1 or not FEWEST <= value.shape[0] <= MOST_STEPS:
        return None
    try:
        found = value.detach().double().cpu().numpy() if hasattr(value, "detach") else np.asarray(value, np.float64)
    except RuntimeError:  # a buffer that was donated
        return None
    return found if bool(((found >= 0) & (found <= 1)).all()) and found[0] != found[-1] else None


def _made_of(kept: np.ndarray[Any, Any], noise: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The share of noise of each step, where the one is the running product of what the other leaves; else None."""
    if len(kept) != len(noise) or (np.diff(kept) > 0).any():
        return None
    for beta in (noise, 1 - noise):
        made = np.cumprod(1 - beta)
        if (np.diff(beta) >= -1e-9).all() and np.allclose(kept, made, rtol=CLOSE, atol=1e-6):
            return np.asarray(beta)
    return None
