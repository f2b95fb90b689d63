"""Weights that labels, masks and filters leave as they were drawn among trained siblings, and those left on purpose."""

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

WIDTH, BLOCKS = 20, 3


def drawn(scales: bool = False) -> Any:
    random = np.random.default_rng(0)

    def weight(k: int) -> Any:
        size = (1.0 + 0.2 * k if scales else 1.0) / WIDTH**0.5
        return jnp.asarray(size * random.normal(size=(WIDTH, WIDTH)), jnp.float32)

    return {"blocks": [{"mix": weight(3 * i), "up": weight(3 * i + 1)} for i in range(BLOCKS)],
            "head": jnp.asarray(random.normal(size=(WIDTH, 1)) / WIDTH**0.5, jnp.float32)}


def answers(p: Any, x: Any) -> Any:
    for block in p["blocks"]:
        x = x + jnp.tanh(jnp.tanh(x @ block["up"]) @ block["mix"])
    return (x @ p["head"])[:, 0]


def trained(optimizer: Any, params: Any, steps: int = 40, gate: Callable[[Any], Any] = lambda g: g) -> None:
    state, random = optimizer.init(params), np.random.default_rng(1)

    @jax.jit
    def step(params: Any, state: Any, x: Any) -> Any:
        loss, gradient = jax.value_and_grad(lambda p: ((answers(p, x) - x[:, 0]) ** 2).mean())(params)
        updates, state = optimizer.update(gate(gradient), state, params)
        return optax.apply_updates(params, updates), state, loss

    for _ in range(steps):
        params, state, _ = step(params, state, random.normal(size=(32, WIDTH)).astype(np.float32))


def by_label(wanted: Callable[[str], bool]) -> Any:
    def labels(params: Any) -> Any:
        return jax.tree_util.tree_map_with_path(
            lambda path, _: "train" if wanted(jax.tree_util.keystr(path)) else "rest", params)

    return optax.multi_transform({"train": optax.adam(1e-2), "rest": optax.set_to_zero()}, labels)


def seen(program: Callable[[], Any], folder: Path) -> list[Finding]:
    return [f for f in watched(program, Settings(str(folder), ("state",))) if f.rule == "J708"]


@pytest.mark.parametrize(("wanted", "kind", "count"), [
    (lambda n: "mix" not in n, "role", 3), (lambda n: "[1]" not in n, "row", 2)], ids=["role", "block"])
def test_what_labels_miss(wanted: Any, kind: str, count: int, tmp_path: Path) -> None:
    (found,) = seen(lambda: trained(by_label(wanted), drawn()), tmp_path)
    assert (found.measured["kind"], found.measured["count"], found.bearing.value) == (kind, count, "cause")


def test_what_a_multiplied_mask_misses(tmp_path: Path) -> None:
    def gate(gradient: Any) -> Any:
        return jax.tree_util.tree_map_with_path(
            lambda path, g: g * (0.0 if "mix" in jax.tree_util.keystr(path) else 1.0), gradient)

    (found,) = seen(lambda: trained(optax.adam(1e-2), drawn(), gate=gate), tmp_path)
    assert found.measured["kind"] == "role"


@pytest.mark.parametrize(("wanted", "params"), [
    (lambda n: True, drawn()), (lambda n: "head" in n, drawn()), (lambda n: "[0]" not in n, drawn()),
    (lambda n: "mix" not in n, drawn(scales=True))], ids=["all", "head", "lower blocks", "loaded"])
def test_frozen_on_purpose(wanted: Any, params: Any, tmp_path: Path) -> None:
    assert seen(lambda: trained(by_label(wanted), params), tmp_path) == []


def test_a_gradient_that_is_zero_by_the_data_is_another_matter(tmp_path: Path) -> None:
    def gate(gradient: Any) -> Any:
        quiet = (jnp.abs(gradient["head"]).sum() > 1e9).astype(jnp.float32)
        return {**gradient, "blocks": [{**b, "mix": b["mix"] * quiet} for b in gradient["blocks"]]}

    assert seen(lambda: trained(optax.adam(1e-2), drawn(), gate=gate), tmp_path) == []


def test_broken_inputs(tmp_path: Path) -> None:
    nans = jax.tree_util.tree_map(lambda a: a * float("nan"), drawn())
    assert seen(lambda: trained(by_label(lambda n: "mix" not in n), nans), tmp_path) == []
    assert seen(lambda: trained(by_label(lambda n: "mix" not in n), drawn(), steps=3), tmp_path / "short") == []
