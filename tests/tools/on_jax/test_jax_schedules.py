"""Schedules of optax that do not fit the run, and those that do."""

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
from traindx_tools.on_jax.measures.schedule import course
from traindx_tools.on_jax.rules import j710_schedule_and_run

STEPS = 80


def trained(make: Callable[[], Any], steps: int = STEPS, error: bool = False) -> None:
    optimizer = make()
    params = {"w": jnp.ones((4, 1))}
    state, random = optimizer.init(params), np.random.default_rng(0)

    @jax.jit
    def step(params: Any, state: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(lambda p: ((x @ p["w"]) ** 2).mean())(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    for _ in range(steps):
        params, state, _ = step(params, state, random.normal(size=(8, 4)).astype(np.float32))
    if error:
        raise ValueError


def trained_and_evaluated(warmup: int, handed_on: int = 0) -> None:
    """An evaluation is given the whole state too; `handed_on`: steps of a second phase by another function."""
    optimizer = optax.MultiSteps(warming(warmup, 4000), 2)
    state, random = {"w": jnp.ones((4, 1))}, np.random.default_rng(0)
    state = (state, optimizer.init(state))

    def update(state: Any, x: Any) -> Any:
        gradient = jax.grad(lambda p: ((x @ p["w"]) ** 2).mean())(state[0])
        updates, inner = optimizer.update(gradient, state[1], state[0])
        return optax.apply_updates(state[0], updates), inner

    step, later, predict = jax.jit(update), jax.jit(lambda s, x: update(s, x)), jax.jit(lambda s, x: x @ s[0]["w"])
    for n in range(2 * STEPS + handed_on):
        state = (step if n < 2 * STEPS else later)(state, random.normal(size=(8, 4)).astype(np.float32))
        if n % 10 == 0:
            predict(state, random.normal(size=(8, 4)).astype(np.float32))


def warming(warmup: int, total: int) -> Any:
    return optax.adam(optax.warmup_cosine_decay_schedule(0.0, 1e-3, warmup, total))


def accumulated(total: int) -> Any:
    return optax.MultiSteps(optax.sgd(optax.cosine_decay_schedule(1e-2, total)), 4)


def own(total: int) -> Any:
    """A function of the program's own, given in a chain."""
    return optax.chain(optax.scale_by_adam(), optax.scale_by_schedule(
        lambda n: -1e-3 * jnp.maximum(1e-2, 1 - n / total)))


def seen(program: Callable[[], Any], folder: Path) -> list[Finding]:
    return [f for f in watched(program, Settings(str(folder), ("schedules",))) if f.rule == "J710"]


@pytest.mark.parametrize(("make", "kind", "bearing"), [
    (lambda: warming(600, 4000), "warmup", "cause"), (lambda: accumulated(2 * STEPS), "seldom", "cause"),
    (lambda: own(10), "early", "sign"), (lambda: optax.sgd(optax.cosine_decay_schedule(1e-2, 900)), "longer", "sign")])
def test_schedules_that_do_not_fit(make: Any, kind: str, bearing: str, tmp_path: Path) -> None:
    (found,) = seen(lambda: trained(make, 2 * STEPS if kind == "seldom" else STEPS), tmp_path)
    assert (found.measured["kind"], found.bearing.value) == (kind, bearing)
    assert found.measured["steps"] == pytest.approx(STEPS // 2 if kind == "seldom" else STEPS, abs=2)
    assert found.where.line is not None


@pytest.mark.parametrize("make", [
    lambda: warming(8, STEPS), lambda: accumulated(STEPS // 4), lambda: own(STEPS), lambda: optax.adam(1e-3),
    lambda: optax.adam(optax.linear_schedule(0.0, 1e-3, 10)), lambda: optax.adam(lambda n: 1e-3),
    lambda: optax.adam(optax.exponential_decay(1e-3, 10, 0.95)),
    lambda: optax.chain(optax.sgd(optax.cosine_decay_schedule(1e-2, 10)), optax.scale_by_schedule(lambda n: 1.0))],
    ids=["warm-up", "accumulated", "own", "no schedule", "constant after a warm-up", "constant", "exponential", "two"])
def test_schedules_that_fit(make: Any, tmp_path: Path) -> None:
    assert seen(lambda: trained(make), tmp_path) == []


def test_an_evaluation_that_is_given_the_state(tmp_path: Path) -> None:
    (found,) = seen(lambda: trained_and_evaluated(600), tmp_path / "long")
    assert (found.measured["kind"], found.measured["steps"]) == ("warmup", pytest.approx(STEPS, abs=2))
    assert seen(lambda: trained_and_evaluated(8), tmp_path / "short") == []
    assert seen(lambda: trained_and_evaluated(600, 100), tmp_path / "handed on") == []


def test_broken_inputs(tmp_path: Path) -> None:
    assert seen(lambda: trained(lambda: warming(600, 4000), error=True), tmp_path / "error") == []
    assert seen(lambda: trained(lambda: warming(600, 4000), steps=5), tmp_path / "short") == []
    assert course(lambda n: [][n], 100) is None
    assert course(lambda n: float("nan"), 100) is not None
    assert list(j710_schedule_and_run.check(None)) == []


def trained_by_epochs(make: Callable[[], Any], epochs: int = 8, steps: int = 100) -> None:
    """One call is an epoch: a scan over its batches."""
    optimizer = make()
    params = {"w": jnp.ones((4, 1))}

    @jax.jit
    def epoch(state: Any, xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            gradient = jax.grad(lambda p: ((x @ p["w"]) ** 2).mean())(state[0])
            updates, inner = optimizer.update(gradient, state[1], state[0])
            return (optax.apply_updates(state[0], updates), inner), None

        return jax.lax.scan(step, state, xs)

    state, random = (params, optimizer.init(params)), np.random.default_rng(0)
    for _ in range(epochs):
        state, _ = epoch(state, random.normal(size=(steps, 8, 4)).astype(np.float32))


@pytest.mark.parametrize("epochs", [4, 8, 30])
def test_a_run_whose_calls_are_epochs_is_judged_too(epochs: int, tmp_path: Path) -> None:
    (found,) = seen(lambda: trained_by_epochs(lambda: optax.MultiSteps(warming(2000, 9000), 4), epochs), tmp_path)
    assert found.measured["kind"] == "warmup"
    assert abs(int(str(found.measured["steps"])) - 25 * epochs) <= 1


def test_epochs_whose_schedule_fits_are_left_alone(tmp_path: Path) -> None:
    assert seen(lambda: trained_by_epochs(lambda: warming(50, 800)), tmp_path) == []
