"""J808: weights that a compiled function looks up by class, in another order than the classes, and healthy twins."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import numpy as np
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings

COUNTS = np.array([40, 400, 90, 1500, 200, 700])
LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(6), COUNTS)).astype(np.int32)
DUE = (COUNTS.sum() / COUNTS).astype(np.float32)
SORTED = np.sort(DUE)


def loss(w: Any, x: Any, y: Any, weights: Any) -> Any:
    picked = jnp.take_along_axis(jax.nn.log_softmax(x @ w), y[:, None], 1)[:, 0]
    return -(picked * weights[y]).mean()  # <- looked up


def as_argument(weights: Any) -> Callable[[Any, Any, Any], Any]:
    step = jax.jit(lambda w, x, y, c: w - 0.1 * jax.grad(loss)(w, x, y, c))
    return lambda w, x, y: step(w, x, y, jnp.asarray(weights))


def as_constant(weights: Any) -> Callable[[Any, Any, Any], Any]:
    kept = jnp.asarray(weights)
    return jax.jit(lambda w, x, y: w - 0.1 * jax.grad(loss)(w, x, y, kept))


def told(tmp_path: Path, made: Callable[[Any], Callable[[Any, Any, Any], Any]], weights: Any,
         labels: Any = LABELS) -> list[Finding]:
    def program() -> None:
        w, step = jnp.zeros((3, 6)), made(np.asarray(weights, np.float32))
        for start in range(0, len(labels) - 64, 64):
            y = jnp.asarray(labels[start:start + 64])
            w = step(w, jnp.ones((64, 3)), y)

    return [f for f in watched(program, Settings(str(tmp_path), ("class-weights",))) if f.rule == "J808"]


@pytest.mark.slow
@pytest.mark.parametrize("made", [as_argument, as_constant])
@pytest.mark.parametrize(("weights", "kind"), [(SORTED, "permuted"), (COUNTS / 100.0, "inverted")])
def test_weights_that_belong_to_other_classes(made: Any, weights: Any, kind: str, tmp_path: Path) -> None:
    (finding,) = told(tmp_path, made, weights)
    assert (finding.measured["kind"], finding.bearing) == (kind, "cause")
    assert finding.where.line == next(n for n, t in enumerate(Path(__file__).read_text().splitlines(), 1)
                                      if t.endswith("# <- looked up"))


@pytest.mark.slow
@pytest.mark.parametrize("weights", [DUE, np.sqrt(DUE), np.ones(6), np.array([5, 1, 1, 1, 1, 1.0])])
def test_weights_that_fit_or_were_made_of_no_counts(weights: Any, tmp_path: Path) -> None:
    assert told(tmp_path, as_argument, weights) == []


@pytest.mark.slow
def test_a_schedule_that_is_looked_up_by_a_step_drawn_evenly(tmp_path: Path) -> None:
    steps = np.random.default_rng(1).integers(0, 6, 3000).astype(np.int32)
    assert told(tmp_path, as_argument, SORTED, steps) == []


@pytest.mark.slow
def test_numbers_that_are_trained_are_no_weights(tmp_path: Path) -> None:
    def program() -> None:
        step = jax.jit(lambda s, x, y: (s[0] - 0.1 * jax.grad(loss)(s[0], x, y, s[1]), s[1] * 1.01))
        state = jnp.zeros((3, 6)), jnp.asarray(SORTED)
        for start in range(0, len(LABELS) - 64, 64):
            state = step(state, jnp.ones((64, 3)), jnp.asarray(LABELS[start:start + 64]))

    assert [f for f in watched(program, Settings(str(tmp_path), ("class-weights",))) if f.rule == "J808"] == []


def test_labels_without_a_row_of_numbers_and_few_rows(tmp_path: Path) -> None:
    assert told(tmp_path, as_argument, SORTED, LABELS[:130]) == []
