"""What a JAX step is trained on against what is evaluated."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))

from watching import watched  # noqa: E402

from traindx_tools.live.settings import Settings  # noqa: E402

WIDTH, CLASSES = 12, 3


def data(rows=320):
    random = np.random.default_rng(0)
    centres = 1.5 * random.normal(size=(CLASSES, WIDTH))
    y = random.integers(0, CLASSES, rows)
    return (centres[y] + random.normal(size=(rows, WIDTH))).astype(np.float32), y


def training(x, y, held, *, whole_step=True, donate=False):
    """A step that returns its state, or gradients that are applied outside."""

    def loss(params, x, y):
        logits = jnp.tanh(x @ params["a"]) @ params["b"]
        return -jax.nn.log_softmax(logits)[jnp.arange(len(y)), y].mean()

    def step(params, batch):
        value, gradient = jax.value_and_grad(loss)(params, batch["x"], batch["y"])
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradient), value

    def run():
        params = {"a": 0.1 * jnp.ones((WIDTH, 8)) * jnp.arange(8), "b": 0.1 * jnp.ones((8, CLASSES))}
        made = jax.jit(step, donate_argnums=(0,) if donate else ())
        gradients = jax.jit(jax.grad(loss))
        predict = jax.jit(lambda params, x: (jnp.tanh(x @ params["a"]) @ params["b"]).argmax(-1))
        for _ in range(3):
            for k in range(0, len(x), 32):
                rows = slice(k, k + 32)
                if whole_step:
                    params, _ = made(params, {"x": x[rows], "y": y[rows]})
                else:
                    found = gradients(params, x[rows], y[rows])
                    params = jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, found)
            for k in range(0, len(held), 20):
                predict(params, held[k:k + 20])

    return run


def found(tmp_path, run):
    seen = watched(run, Settings(str(tmp_path / "run"), ("rows",)))
    return [(f.rule, f.measured["kind"]) for f in seen], seen


@pytest.mark.parametrize("whole_step", [True, False])
@pytest.mark.parametrize(("change", "kinds"), [(lambda x: x, []), (lambda x: 255 * x, [("J802", "scaled")])])
def test_evaluated_inputs_of_another_scale(change, kinds, whole_step, tmp_path):
    x, y = data()
    rules, _ = found(tmp_path, training(x[:256], y[:256], change(x[256:]), whole_step=whole_step, donate=True))
    assert rules == kinds


@pytest.mark.parametrize(("shared", "kinds"), [(0, []), (20, [("J803", "leak")]), (64, [("J803", "same-data")])])
def test_evaluated_rows_that_were_trained_on(shared, kinds, tmp_path):
    x, y = data()
    held = np.concatenate([x[:shared], x[256:256 + 64 - shared]])
    held = held[np.random.default_rng(1).permutation(64)]
    rules, seen = found(tmp_path, training(x[:256], y[:256], held[:60]))
    assert rules == kinds
    assert [f.severity.value for f in seen] == ["high" if k == "leak" else "low" for _, k in kinds]


def test_functions_without_batches_and_values_that_are_not_finite(tmp_path):
    def run():
        jax.jit(lambda: jnp.ones(3))()
        jax.jit(lambda key: jax.random.normal(key, (4, 4)))(jax.random.key(0))
        step = jax.jit(lambda w, x: (w - jax.grad(lambda w: (x @ w).sum())(w), 0.0))
        w = jnp.ones((4, 2))
        for _ in range(6):
            w, _ = step(w, np.full((8, 4), np.nan, np.float32))

    assert found(tmp_path, run)[0] == []


@pytest.mark.parametrize(("shared", "kinds"), [(0, []), (20, [("J803", "leak")])])
def test_an_optimizer_state_that_is_an_argument_of_its_own(shared, kinds, tmp_path):
    optax = pytest.importorskip("optax")
    x, y = data()
    held = np.random.default_rng(1).permutation(np.concatenate([x[:shared], x[256:256 + 60 - shared]]))
    tx = optax.adam(1e-2)

    def loss(params, x, y):
        return -jax.nn.log_softmax(jnp.tanh(x @ params["a"]) @ params["b"])[jnp.arange(len(y)), y].mean()

    def run():
        params = {"a": 0.1 * jnp.ones((WIDTH, 8)) * jnp.arange(8), "b": 0.1 * jnp.ones((8, CLASSES))}
        state = tx.init(params)

        @jax.jit
        def step(params, state, x, y):
            update, state = tx.update(jax.grad(loss)(params, x, y), state)
            return optax.apply_updates(params, update), state

        predict = jax.jit(lambda params, x: jnp.tanh(x @ params["a"]) @ params["b"])
        for _ in range(3):
            for k in range(0, 256, 32):
                params, state = step(params, state, x[k:k + 32], y[k:k + 32])
            for k in range(0, 60, 20):
                predict(params, held[k:k + 20])

    assert found(tmp_path, run)[0] == kinds
