"""Traces made by hand: what a run showed, without a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from traindx_tools.experiments.arms import Run
from traindx_tools.experiments.trace import LIVE, Applied, Curve, Trace


def curve(values: object, steps: object = None) -> Curve:
    held = np.array(values, dtype=np.float64)
    return Curve(np.arange(1.0, len(held) + 1) if steps is None else np.array(steps, dtype=np.float64), held)


def trace(loss: object = (), **fields: object) -> Trace:
    """A run that ended by itself, with this loss at each step."""
    held = np.array(loss, dtype=np.float64)
    curves = {f"{LIVE}loss": curve(held)} if len(held) else {}
    given = {"ended": True, "exit_code": 0, "curves": curves, "seconds": 1.0, **fields}
    return Trace(Path("."), **given)  # type: ignore[arg-type]


def run(changed: bool, seed: int, loss: object = (), **fields: object) -> Run:
    applied = {"applied": Applied(1, "here")} if changed else {}
    return Run(changed, seed, trace(loss, **{**applied, **fields}))


def levels(level: float, seed: int = 0, n: int = 50, noise: float = 0.01) -> np.ndarray:
    """A curve around a level."""
    return level + noise * np.random.default_rng(seed).standard_normal(n)
