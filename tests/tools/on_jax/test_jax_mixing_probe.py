"""The probe `mixing`: evaluated rows that depend on their batch are told; graphs, sequences and comparisons are not."""

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
from traindx_tools.rows.neighbours import Neighbours

ROWS, BATCH = 96, 12
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 5, 3)).astype(np.float32)
NEAR = np.where(RNG.random((ROWS, 5, 2)) < 0.3, -1, RNG.integers(0, 5, (ROWS, 5, 2))).astype(np.int32)
Y = RNG.normal(size=ROWS).astype(np.float32)
W = RNG.normal(size=(3, 3)).astype(np.float32)


def flat_graph(w: Any, x: Any, near: Any, *, masked: bool) -> Any:
    samples, nodes, _ = x.shape
    shift = jnp.arange(samples)[:, None, None] * nodes
    index = jnp.where(near >= 0, near + shift, -1).reshape(samples * nodes, -1)
    h = jnp.tanh(x.reshape(samples * nodes, -1) @ w)
    message = h[index]  # <- taken
    if masked:
        message = message * (index >= 0)[..., None]
    return (h + message.sum(1)).reshape(samples, nodes, -1).sum((1, 2))


def unmasked(w: Any, x: Any, near: Any) -> Any:
    return flat_graph(w, x, near, masked=False)


def masked(w: Any, x: Any, near: Any) -> Any:
    return flat_graph(w, x, near, masked=True)


def softmax_over_the_batch(w: Any, x: Any, near: Any) -> Any:
    return (jax.nn.softmax(x.sum(1) @ w, axis=0)).sum(1)


def compared(w: Any, x: Any, near: Any) -> Any:
    h = x.sum(1) @ w
    return h @ h.T




def told(tmp_path: Path, model: Callable[..., Any], order: Callable[[int], Any] | None = None, *, jit: bool = True,
         evaluated: Callable[..., Any] | None = None, epochs: int = 3) -> list[Finding]:
    order = order or np.random.default_rng(1).permutation

    def program() -> None:
        def loss(w: Any, x: Any, near: Any, y: Any) -> Any:
            out = model(w, x, near)
            return ((out if out.ndim == 1 else out.mean(1)) - y).var()

        step = jax.jit(lambda w, *batch: w - 0.01 * jax.grad(loss)(w, *batch)) if jit else None
        gradient = jax.value_and_grad(loss)
        predict = jax.jit(evaluated or model)
        w = jnp.asarray(W)
        for _ in range(epochs):
            for rows in np.asarray(order(ROWS)).reshape(-1, BATCH):
                batch = X[rows], NEAR[rows], Y[rows]
                w = step(w, *batch) if step is not None else w - 0.01 * gradient(w, *batch)[1]
            predict(w, X[:BATCH], NEAR[:BATCH])

    return [f for f in watched(program, Settings(str(tmp_path), ("mixing",))) if f.rule == "J401"]


def test_missing_neighbours_that_take_the_last_row(tmp_path: Path) -> None:
    (finding,) = told(tmp_path, unmasked)
    assert (finding.bearing, finding.measured["op"]) == ("cause", "gather")
    assert finding.measured["changed"] >= BATCH // 2
    assert "below zero" in finding.statement
    assert "-1 takes the last row" in str(finding.measured["how"])
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert finding.where.line == next(n for n, t in enumerate(text, 1) if t.endswith("# <- taken"))


@pytest.mark.slow
def test_a_softmax_over_the_batch_and_a_gradient_outside_of_jit(tmp_path: Path) -> None:
    (finding,) = told(tmp_path, softmax_over_the_batch, jit=False)
    assert "how" not in finding.measured


def test_samples_that_stay_apart(tmp_path: Path) -> None:
    assert told(tmp_path, masked) == []


@pytest.mark.slow
def test_rows_that_always_stand_beside_the_same_are_nodes_or_steps(tmp_path: Path) -> None:
    assert told(tmp_path / "in order", softmax_over_the_batch, np.arange) == []
    assert told(tmp_path / "one graph", softmax_over_the_batch, lambda n: np.tile(np.arange(BATCH), n // BATCH)) == []
    assert told(tmp_path / "seen once", softmax_over_the_batch, epochs=1) == []


@pytest.mark.slow
def test_comparisons_and_preparations_mix_by_design(tmp_path: Path) -> None:
    assert told(tmp_path / "each with each", masked, evaluated=compared) == []
    assert told(tmp_path / "prepared", masked, evaluated=lambda w, x, near: (x - x.mean(0)) / x.std(0)) == []
    assert told(tmp_path / "one number", masked, evaluated=lambda w, x, near: unmasked(w, x, near).mean()) == []


@pytest.mark.slow
def test_calls_back_into_python_are_not_repeated(tmp_path: Path) -> None:
    seen: list[int] = []

    def counted(w: Any, x: Any, near: Any) -> Any:
        jax.debug.callback(lambda: seen.append(1))
        return unmasked(w, x, near)

    assert told(tmp_path, masked, evaluated=counted) == []
    assert len(seen) == 3


def test_broken_inputs(tmp_path: Path) -> None:
    def program() -> None:
        step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda v: (x @ v).sum())(w), donate_argnums=0)
        w, predict = jnp.ones((3, 3)), jax.jit(lambda v, x: x @ v)
        for rows in (4, 1, 0, 7):
            x = np.full((rows, 3), np.nan, np.float32)
            w = step(w, x)
            predict(w, x)

    assert [f for f in watched(program, Settings(str(tmp_path), ("mixing",))) if f.rule == "J401"] == []


def test_company_of_rows() -> None:
    rows = list(range(40))
    again, apart, alike = Neighbours(), Neighbours(), Neighbours()
    for number in range(3):
        again.take(rows)
        apart.take(np.random.default_rng(number).permutation(rows).tolist())
        alike.take([5, 6] * 20)
    assert (again.exchanged, apart.exchanged, alike.exchanged, Neighbours().exchanged) == (False, True, False, False)
    alike.take([])
