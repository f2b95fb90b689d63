"""Codebooks inside compiled steps whose codes have another scale than what they quantise, and those in use."""

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
from traindx_tools.on_jax.codes.nearest import lookups_in, may_look_up

SIZE, WIDTH = 16, 4


def by_product(z: Any, table: Any) -> Any:
    """Squares written out, rows taken by their numbers."""
    far = (z**2).sum(-1, keepdims=True) - 2 * z @ table.T + (table**2).sum(-1)
    return table[jnp.argmin(far, -1)]


def by_difference(z: Any, table: Any) -> Any:
    """Differences to each code, rows taken as a product with one-hot ones."""
    chosen = jnp.argmin(((z[:, None, :] - table[None]) ** 2).sum(-1), -1)
    return jax.nn.one_hot(chosen, SIZE) @ table


def by_columns(z: Any, table: Any) -> Any:
    """The codes are the columns of a table."""
    columns = jax.lax.stop_gradient(table)
    far = (z**2).sum(-1, keepdims=True) - 2 * z @ columns + (columns**2).sum(0, keepdims=True)
    return jnp.take(table.T, jnp.argmax(-far, axis=-1), axis=0)


def trained(quantise: Callable[[Any, Any], Any], scale: float, *, flipped: bool = False, steps: int = 60,
            move: float = 0.0) -> None:
    random = np.random.default_rng(0)
    table = scale * random.normal(size=(WIDTH, SIZE) if flipped else (SIZE, WIDTH)) + 30.0 * move
    params = {"encoder": jnp.asarray(0.5 * random.normal(size=(8, WIDTH)), jnp.float32),
              "decoder": jnp.asarray(0.5 * random.normal(size=(WIDTH, 8)), jnp.float32),
              "book": jnp.asarray(table, jnp.float32)}

    def loss(p: Any, x: Any) -> Any:
        z = x @ p["encoder"]
        q = quantise(z, p["book"])
        straight = z + jax.lax.stop_gradient(q - z)
        return ((straight @ p["decoder"] - x) ** 2).mean() + ((q - jax.lax.stop_gradient(z)) ** 2).mean()

    @jax.jit
    def step(p: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(p, x)
        jax.debug.callback(SEEN.append, value)
        return jax.tree_util.tree_map(lambda a, b: a - 1e-4 * b, p, gradient), value

    for _ in range(steps):
        params, _ = step(params, random.normal(size=(64, 8)).astype(np.float32))


SEEN: list[Any] = []


def classifier() -> None:
    """The best class is counted: rows of the table are not taken."""
    random = np.random.default_rng(0)
    table = jnp.asarray(100 * random.normal(size=(SIZE, WIDTH)), jnp.float32)

    @jax.jit
    def step(t: Any, x: Any, y: Any) -> Any:
        def loss(t: Any) -> Any:
            scores = x @ t.T
            return -jax.nn.log_softmax(scores)[jnp.arange(len(y)), y].mean(), (jnp.argmax(scores, -1) == y).mean()

        (value, hits), gradient = jax.value_and_grad(loss, has_aux=True)(t)
        return t - 0.01 * gradient, value, hits

    for _ in range(60):
        table, *_ = step(table, random.normal(size=(64, WIDTH)).astype(np.float32), np.zeros(64, np.int32))


def seen(program: Callable[[], Any], folder: Path) -> list[Finding]:
    return [f for f in watched(program, Settings(str(folder), ("codebooks",))) if f.rule == "J805"]


@pytest.mark.parametrize(("quantise", "scale", "flipped"), [
    (by_product, 60.0, False), (by_difference, 60.0, False), (by_columns, 60.0, True), (by_product, 0.001, False)])
def test_codes_of_another_scale(quantise: Any, scale: float, flipped: bool, tmp_path: Path) -> None:
    SEEN.clear()
    found = seen(lambda: trained(quantise, scale, flipped=flipped, move=float(scale < 1)), tmp_path)
    assert [f.where.module for f in found] == ["p['book']"]
    assert found[0].measured["size"] == SIZE
    assert len(SEEN) == 60  # what the step says to the host is said once


@pytest.mark.parametrize(("quantise", "scale", "steps"), [
    (by_product, 1.0, 60), (by_difference, 1.5, 60), (by_product, 100.0, 10)], ids=["used", "differences", "short"])
def test_codebooks_in_use_and_short_runs(quantise: Any, scale: float, steps: int, tmp_path: Path) -> None:
    assert seen(lambda: trained(quantise, scale, steps=steps), tmp_path) == []


def test_a_classifier_is_no_codebook(tmp_path: Path) -> None:
    assert seen(classifier, tmp_path) == []


def test_broken_inputs(tmp_path: Path) -> None:
    def program() -> None:
        trained(by_product, float("nan"))

    assert seen(program, tmp_path) == []
    empty = jax.make_jaxpr(lambda x: x)(jnp.ones(3))
    assert not may_look_up(empty)
    assert lookups_in(empty, [jnp.ones(3)]) == []
