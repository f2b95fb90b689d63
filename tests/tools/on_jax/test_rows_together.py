"""J404: rows that a step puts into another order in part, and steps whose order means something."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import numpy as np
import optax
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.measures.row_orders import apart

N = 24
Loss = Callable[..., Any]


def net(p: Any, x: Any) -> Any:
    return (jnp.tanh(x @ p["a"]) @ p["b"])[:, 0]


def cox(p: Any, x: Any, t: Any, e: Any) -> Any:
    order = jnp.argsort(-t)
    eta = net(p, x[order])
    return -jnp.mean((eta - jax.lax.cumlogsumexp(eta)) * e[order])


def cox_apart(p: Any, x: Any, t: Any, e: Any) -> Any:
    order = jnp.argsort(-t)
    eta = net(p, x[order])
    return -jnp.mean((eta - jax.lax.cumlogsumexp(eta)) * e)


def weighted_apart(p: Any, x: Any, y: Any, w: Any) -> Any:
    hard = jnp.argsort((net(p, x) - y) ** 2)
    return jnp.mean((net(p, x)[hard] - y[hard]) ** 2 * w)


def weighted(p: Any, x: Any, y: Any, w: Any) -> Any:
    return jnp.mean((net(p, x) - y) ** 2 * w)


def mixed_neighbours(p: Any, x: Any, y: Any, w: Any) -> Any:
    share = w[:, None] / 2
    return jnp.mean((net(p, share * x + (1 - share) * x[::-1]) - (w / 2 * y + (1 - w / 2) * y[::-1])) ** 2)


def in_groups(p: Any, x: Any, reward: Any, mask: Any) -> Any:
    groups = reward.reshape(-1, 4)
    return -jnp.mean(net(p, x) * (groups - groups.mean(1, keepdims=True)).reshape(-1) * mask)


def in_pairs(p: Any, x: Any, y: Any, w: Any) -> Any:
    out = net(p, x)
    return jnp.mean(jax.nn.softplus(-(out[::2] - out[1::2]) * jnp.sign(y[::2] - y[1::2])) * w[::2])


def two_batches(p: Any, x: Any, y: Any, other: Any) -> Any:
    return jnp.mean((net(p, x) - y) ** 2) + jnp.var(net(p, jnp.stack([other, other**2, -other], 1)))


def along_time(p: Any, x: Any, y: Any, w: Any) -> Any:
    state, out = jax.lax.scan(lambda h, v: (0.9 * h + v, 0.9 * h + v), jnp.zeros(3), x)
    return jnp.mean((net(p, out) - y) ** 2 * w) + 0 * state.sum()


def with_noise(p: Any, x: Any, t: Any, e: Any) -> Any:
    return cox_apart(p, x + 0.1 * jax.random.normal(jax.random.key(0), x.shape), t, e)


def trained(loss: Loss, rows: int = N, calls: int = 5) -> None:
    random, tx = np.random.default_rng(0), optax.sgd(1e-2)
    params = {"a": jnp.asarray(random.normal(size=(3, 8)), jnp.float32),
              "b": jnp.asarray(random.normal(size=(8, 1)), jnp.float32)}
    state = tx.init(params)

    @jax.jit
    def step(params: Any, state: Any, x: Any, t: Any, e: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(params, x, t, e)
        updates, state = tx.update(gradient, state)
        return optax.apply_updates(params, updates), state, value

    for _ in range(calls):
        x = random.normal(size=(rows, 3)).astype(np.float32)
        t = (x[:, 0] + random.normal(size=rows)).astype(np.float32)
        params, state, _ = step(params, state, x, t, random.integers(0, 2, rows).astype(np.float32))


def seen(loss: Loss, folder: Path, **more: int) -> list[Finding]:
    return [f for f in watched(lambda: trained(loss, **more), Settings(str(folder), ("rows-together",)))
            if f.rule == "J404"]


@pytest.mark.parametrize("loss", [cox_apart, weighted_apart])
def test_rows_that_were_sorted_in_part_are_told(loss: Loss, tmp_path: Path) -> None:
    (found,) = seen(loss, tmp_path)
    assert found.measured["together"] == ("x", "t")
    assert found.measured["alone"] == ("e",)


@pytest.mark.parametrize("loss", [cox, weighted, mixed_neighbours, in_groups, in_pairs, two_batches, along_time,
                                  with_noise])
def test_orders_that_mean_something_or_nothing_are_left_alone(loss: Loss, tmp_path: Path) -> None:
    assert seen(loss, tmp_path) == []


@pytest.mark.parametrize("more", [{"rows": 2}, {"calls": 2}])
def test_few_rows_and_few_calls_tell_nothing(more: dict[str, int], tmp_path: Path) -> None:
    assert seen(cox_apart, tmp_path, **more) == []


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), 0.0])
def test_a_loss_that_is_no_number_or_nothing(loss: float) -> None:
    rows = [np.arange(8.0), np.arange(8.0), np.arange(8.0)]
    assert apart(lambda _: [np.float32(loss)], rows, (0, 1, 2)) is None
    assert apart(lambda _: [], rows, (0, 1, 2)) is None
