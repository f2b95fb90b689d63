"""Runs with known learning behaviour: series by hand, how they are read and judged, and shapes of curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.run import Note, Run, Series

Floats = NDArray[np.float64]
Maker = Callable[[np.random.Generator], Run]

RULES = (
    "l201_plateau",
    "l202_arithmetic_constant",
    "l203_overfitting",
    "l204_train_validation_gap",
    "l205_loss_accuracy_contradiction",
    "l206_sawtooth",
    "l207_step_at_boundary",
    "l208_train_good_eval_chance",
    "l209_component_domination",
    "l210_dead_term",
    "l211_accuracy_at_chance",
    "l212_converged",
    "l213_prediction_collapse",
    "l214_component_disparity",
    "l215_metric_unchanged",
    "l216_metric_exactly_constant",
    "l217_never_moves",
    "l218_rise_after_change",
    "l219_weights_shrink",
    "l220_inactive_units",
    "l221_test_below_validation",
    "l222_spike_then_stuck",
    "l223_worse_than_no_skill",
    "l224_score_falls",
    "l225_training_above_validation",
    "l226_score_stands_still",
    "l230_test_of_early_weights",
    "l601_codebook_collapse",
    "l602_advantages_zero",
    "l603_entropy_collapse",
    "l604_reward_flat",
    "l605_kl_anomaly",
    "l606_gan_imbalance",
    "l607_posterior_collapse",
    "l608_clip_or_norm_at_bound",
)


def series(
    name: str,
    values: Iterable[float],
    *,
    group: str = "train",
    every: float = 10,
    start: float | None = None,
    epochs: bool = False,
    epoch: Iterable[float] | None = None,
    original: str | None = None,
    source: str = "train.log",
    lines: Iterable[int] | None = None,
) -> Series:
    """A series that counts steps (`every`, 2 * `every`, ...), or epochs 1, 2, ... where `epochs`."""
    v = np.asarray(list(values), dtype=np.float64)
    n = len(v)
    nothing = np.full(n, math.nan)
    counted = (every if start is None else start) + every * np.arange(n)
    given = nothing if epoch is None else np.asarray(list(epoch), dtype=np.float64)
    return Series(
        name=name,
        original=original or name,
        group=group,
        source=source,
        values=v,
        step=nothing if epochs else counted,
        epoch=np.arange(1.0, n + 1) if epochs else given,
        time=nothing,
        line=np.asarray(list(lines), dtype=np.int64) if lines is not None else np.arange(1, n + 1),
    )


def run(*found: Series, notes: tuple[Note, ...] = (), **config: Any) -> Run:
    """A run of these series; keywords are its configuration."""
    return Run(series=found, notes=notes, config=config)


def read(folder: Path, **files: str) -> Run:
    """The run that the readers make of these texts; `log` becomes log.txt, `config` config.yaml, `csv` metrics.csv."""
    names = {"log": "log.txt", "config": "config.yaml", "csv": "metrics.csv", "jsonl": "metrics.jsonl"}
    for kind, text in files.items():
        (folder / names[kind]).write_text(text)
    return read_run([folder])


def check_of(module: str) -> Callable[[Run], Iterator[Finding]]:
    check: Callable[[Run], Iterator[Finding]] = import_module(f"traindx_tools.on_logs.curves.{module}").check
    return check


def findings(r: Run, *modules: str) -> list[Finding]:
    """What these rules find, all rules of learning and of domains by default."""
    return [f for m in modules or RULES for f in check_of(m)(r)]


def serious(r: Run, *modules: str) -> list[Finding]:
    """The findings above INFO."""
    return [f for f in findings(r, *modules) if f.severity is not Severity.INFO]


def only(r: Run, module: str) -> Finding:
    """The single finding of one rule."""
    found = findings(r, module)
    assert len(found) == 1, [f.statement for f in found]
    return found[0]


def decay(rng: np.random.Generator, n: int, first: float, last: float, noise: float, speed: float = 4.0) -> Floats:
    """An exponential course from `first` to `last` with relative noise."""
    t = np.arange(n) / max(1, n - 1)
    course = last + (first - last) * np.exp(-speed * t)
    return np.maximum(course * (1 + noise * rng.standard_normal(n)), 1e-5)


def digits(values: Iterable[float], places: int = 4) -> Floats:
    """What is left of values that a log prints with so many decimal places."""
    return np.round(np.asarray(list(values), dtype=np.float64), places)
