"""J712: second moments in a carried state that only fade, and states that are as they should be."""

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
from traindx_tools.on_variables.moments import FACTOR, by_factors

CALLS = 70


def problem(optimizer: Any) -> tuple[Callable[..., Any], Any]:
    """A step that was never called, and weights with the optimizer's state after 200 steps."""
    random = np.random.default_rng(0)
    params = {n: jnp.asarray(0.3 * random.normal(size=(12, 12)), jnp.float32) for n in ("a", "b", "c")}

    def update(params: Any, state: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            return jnp.mean((jnp.tanh(jnp.tanh(x @ p["a"]) @ p["b"]) @ p["c"] - jnp.sin(x)) ** 2)

        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    state, quiet = optimizer.init(params), jax.jit(update)
    for _ in range(200):
        params, state, _ = quiet(params, state, random.normal(size=(32, 12)).astype(np.float32))
    return update, (params, state)


def resumed(folder: Path, change: Callable[[Any], Any] = lambda state: state, optimizer: Any = None,
            spread: float = 1.0, calls: int = CALLS) -> list[Finding]:
    update, (params, state) = problem(optimizer or optax.adam(1e-3))
    state = change(state)

    def resume(params: Any, state: Any, x: Any) -> Any:
        return update(params, state, x)

    def run() -> None:
        step, own, held = jax.jit(resume), params, state
        random = np.random.default_rng(1)
        for _ in range(calls):
            own, held, _ = step(own, held, (spread * random.normal(size=(32, 12))).astype(np.float32))

    found = watched(run, Settings(str(folder), ("jax-loaded-moments",)))
    return [f for f in found if f.rule == "J712"]


def inflated(factor: float, *names: str) -> Callable[[Any], Any]:
    def change(state: Any) -> Any:
        nu = {n: v * (factor if n in names else 1.0) for n, v in state[0].nu.items()}
        return (state[0]._replace(nu=nu), *state[1:])

    return change


def test_moments_of_a_loss_that_was_summed(tmp_path: Path) -> None:
    (found,) = resumed(tmp_path, inflated(65536.0, "a", "b", "c"))
    assert found.measured["kind"] == "scale"
    assert found.measured["factor"] >= FACTOR
    assert "resume" in found.statement


def test_moments_of_a_part_of_the_parameters(tmp_path: Path) -> None:
    (found,) = resumed(tmp_path, inflated(1e5, "b"))
    assert found.measured["kind"] == "part"
    assert [n.endswith("['b']") for n in found.measured["names"]] == [True]


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_a_resume_and_data_of_another_spread_are_left_alone(tmp_path: Path, spread: float) -> None:
    assert resumed(tmp_path, spread=spread) == []


def test_a_factor_that_other_data_can_make_is_left_alone(tmp_path: Path) -> None:
    assert resumed(tmp_path, inflated(40.0, "a", "b", "c")) == []


def test_a_new_state_one_without_moments_and_too_few_calls(tmp_path: Path) -> None:
    def zeroed(state: Any) -> Any:
        return jax.tree_util.tree_map(jnp.zeros_like, state)

    assert resumed(tmp_path / "zero", zeroed) == []
    assert resumed(tmp_path / "sgd", optimizer=optax.sgd(0.1)) == []
    assert resumed(tmp_path / "short", inflated(65536.0, "a", "b", "c"), calls=3) == []


def test_a_state_that_is_not_finite_says_nothing(tmp_path: Path) -> None:
    assert resumed(tmp_path, inflated(float("inf"), "a", "b", "c")) == []


def test_positive_weights_that_decay_without_gradients_are_no_moments(tmp_path: Path) -> None:
    def run() -> None:
        step = jax.jit(lambda p, x: jax.tree_util.tree_map(
            lambda a, g: a * 0.999 - 1e-3 * g, p, jax.grad(lambda q: jnp.mean((x @ q["used"]) ** 2))(p)))
        params = {"used": jnp.asarray(np.random.default_rng(0).normal(size=(9, 9)), jnp.float32),
                  "table": jnp.ones((40, 8))}
        for _ in range(CALLS):
            params = step(params, jnp.ones((4, 9)))

    assert watched(run, Settings(str(tmp_path), ("jax-loaded-moments",))) == ()


def test_factors_are_judged_alike_wherever_they_were_measured() -> None:
    assert by_factors({}, 8) is None
    assert by_factors({"a": 1e5}, 8) is None
    assert by_factors({"a": 1e5, "b": float("nan"), "c": 0.0}, 8) is None
    assert by_factors({"a": 1e5, "b": 2e5}, 8).kind == "scale"
    assert by_factors({"a": 1e5, "b": 1.0, "c": 2.0}, 8).names == ("a",)
    assert by_factors({"a": 1e5, "b": 1.0, "c": 200.0}, 8) is None
