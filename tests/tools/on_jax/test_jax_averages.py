"""Averages in half precision that stand still inside compiled functions, and those that move or are copied."""

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
from traindx_tools.on_jax.rules import j709_average_rounded_away

Follow = Callable[[Any, Any, Any], Any]


def mixed(decay: float) -> Follow:
    return lambda e, p, _: decay * e + (1 - decay) * p.astype(e.dtype)


def incremental(decay: float) -> Follow:
    return lambda e, p, _: optax.incremental_update(p.astype(e.dtype), e, 1 - decay)


def copied(every: int) -> Follow:
    return lambda e, p, n: jnp.where(n % every == 0, p.astype(e.dtype), e)


def frozen(e: Any, p: Any, n: Any) -> Any:
    return e * 1.0


def trained(follow: Follow, dtype: Any, *, apart: bool = False, steps: int = 60, first: float = 0.2) -> None:
    random = np.random.default_rng(0)
    params = {"a": jnp.asarray(first * random.normal(size=(16, 32)), jnp.float32),
              "b": jnp.asarray(first * random.normal(size=(32, 4)), jnp.float32)}
    average = jax.tree_util.tree_map(lambda a: a.astype(dtype), params)
    optimizer = optax.adam(1e-2)
    state = optimizer.init(params)

    def followed(average: Any, params: Any, n: Any) -> Any:
        return jax.tree_util.tree_map(lambda e, p: follow(e, p, n), average, params)

    @jax.jit
    def step(params: Any, state: Any, average: Any, x: Any, n: Any) -> Any:
        def loss(p: Any) -> Any:
            return ((jnp.tanh(x @ p["a"]) @ p["b"] - x[:, :4]) ** 2).mean()

        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        return params, state, average if apart else followed(average, params, n), value

    follow_apart = jax.jit(followed)
    for k in range(steps):
        x = random.normal(size=(32, 16)).astype(np.float32)
        params, state, average, _ = step(params, state, average, x, jnp.asarray(k))
        if apart:
            average = follow_apart(average, params, jnp.asarray(k))


def seen(program: Callable[[], Any], folder: Path) -> list[Finding]:
    return [f for f in watched(program, Settings(str(folder), ("averages",))) if f.rule == "J709"]


@pytest.mark.slow
@pytest.mark.parametrize(("follow", "dtype", "apart"), [
    (mixed(0.999), jnp.bfloat16, False), (incremental(0.9999), jnp.float16, False), (mixed(0.999), jnp.bfloat16, True)])
def test_averages_that_stand_still(follow: Follow, dtype: Any, apart: bool, tmp_path: Path) -> None:
    (found,) = seen(lambda: trained(follow, dtype, apart=apart), tmp_path)
    assert (found.measured["dtype"], found.bearing.value) == (jnp.dtype(dtype).name, "cause")


@pytest.mark.parametrize(("follow", "dtype"), [
    (mixed(0.999), jnp.float32), (mixed(0.9), jnp.bfloat16), (copied(1000), jnp.bfloat16), (copied(10), jnp.bfloat16),
    (frozen, jnp.bfloat16)], ids=["float32", "short", "copied seldom", "copied often", "frozen"])
def test_averages_that_move_and_targets(follow: Follow, dtype: Any, tmp_path: Path) -> None:
    assert seen(lambda: trained(follow, dtype), tmp_path) == []


def test_broken_inputs(tmp_path: Path) -> None:
    assert seen(lambda: trained(mixed(0.999), jnp.bfloat16, first=float("nan")), tmp_path) == []
    assert seen(lambda: trained(mixed(0.999), jnp.bfloat16, steps=4), tmp_path / "short") == []
    assert list(j709_average_rounded_away.check([])) == []
