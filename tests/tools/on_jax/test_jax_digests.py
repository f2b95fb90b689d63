"""Digests of the calls of compiled functions: equal for equal runs, apart where arguments or results are."""

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

from traindx_tools.experiments.isolating.parting.compare import first
from traindx_tools.experiments.isolating.parting.recording import Recording, read_recordings
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.probes.digests import of_leaf
from traindx_tools.on_jax.registry import chosen


def training(noise: Callable[[int], float] = lambda step: 0.0) -> list[float]:
    """Five calls of a compiled step, which is given its state back and donates it."""
    @jax.jit
    def step(w: Any, x: Any, key: Any) -> Any:
        loss, gradient = jax.value_and_grad(lambda w: ((x @ w + jax.random.normal(key)) ** 2).mean())(w)
        return w - 0.1 * gradient, loss

    w, rng, losses = jnp.ones(3), np.random.default_rng(0), []
    for i in range(5):
        w, loss = step(w, rng.normal(size=(4, 3)) + noise(i), jax.random.key(i))
        losses.append(float(loss))
    return losses


def recorded(folder: Path, program: Callable[[], Any]) -> Recording:
    watched(program, Settings(str(folder), ("digests",)))
    (found,) = read_recordings(folder).values()
    return found


def test_equal_runs_and_one_that_parts_in_an_argument(tmp_path: Path) -> None:
    one, other = recorded(tmp_path / "1", training), recorded(tmp_path / "2", training)
    assert first(one, other) is None
    assert one.steps >= 5
    found = first(one, recorded(tmp_path / "3", lambda: training(lambda step: 1e-9 if step == 3 else 0.0)))
    assert found is not None
    assert found.kind == "argument"
    assert "[1] of step" in found.name


def test_results_are_bitwise_those_without_it(tmp_path: Path) -> None:
    bare, with_it = training(), list[float]()
    watched(lambda: with_it.extend(training()), Settings(str(tmp_path), ("digests",)))
    assert [x.hex() for x in with_it] == [x.hex() for x in bare]


def test_it_runs_only_where_it_is_asked_for_by_its_name() -> None:
    assert "digests" not in [p.name for p in chosen(("all", "always"))]
    assert [p.name for p in chosen(("digests",))] == ["digests"]


@pytest.mark.parametrize("leaf", [np.float32(1), jnp.ones(2, jnp.bfloat16), 3, "text", None, jax.random.key(1)])
def test_of_any_leaf(leaf: Any) -> None:
    assert of_leaf(leaf) == of_leaf(leaf)
    assert of_leaf(leaf) != of_leaf(jnp.zeros(9))
