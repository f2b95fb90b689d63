"""J706: parameters that stop at some call, with the number that stopped them; healthy programs are silent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import optax
from watching import watched

from traindx_tools.finding import Bearing, Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.measures.standstill import rounds, standstill
from traindx_tools.on_jax.paths.factors import factors

STEPS, EPOCH = 60, 10
RNG = np.random.default_rng(3)
X = RNG.normal(size=(STEPS, 8, 4)).astype(np.float32)
Y = (X @ np.array([1.0, -2.0, 0.5, 3.0], np.float32) + 0.3 * RNG.normal(size=(STEPS, 8))).astype(np.float32)
TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()


def loss_of(p: Any, x: Any, y: Any) -> Any:
    return ((x @ p["w"] + p["b"] - y) ** 2).mean()


def training(tx: Any, steps: int = STEPS, *, donate: bool = False, noise: bool = True) -> Callable[[], None]:
    """A jitted step with its optimizer, and an evaluation after each epoch of 10 steps."""
    def run() -> None:
        def step(p: Any, s: Any, x: Any, y: Any) -> Any:
            value, g = jax.value_and_grad(loss_of)(p, x, y)
            updates, s = tx.update(g, s, p)  # <- update
            return optax.apply_updates(p, updates), s, value

        p = {"w": jnp.zeros(4), "b": jnp.zeros(1)}
        s = tx.init(p)
        compiled = jax.jit(step, donate_argnums=(0, 1) if donate else ())
        evaluate = jax.jit(loss_of)
        for i in range(steps):
            p, s, _ = compiled(p, s, X[i if noise else 0], Y[i if noise else 0])
            if i % EPOCH == EPOCH - 1:
                evaluate(p, X[0] + 1, Y[0])
    return run


def apart(schedule: Any) -> Callable[[], None]:
    """Gradients and the update are two jitted functions."""
    tx = optax.sgd(schedule)

    def run() -> None:
        @jax.jit
        def update(p: Any, s: Any, g: Any) -> Any:
            updates, s = tx.update(g, s, p)
            return optax.apply_updates(p, updates), s

        p = {"w": jnp.zeros(4), "b": jnp.zeros(1)}
        s, gradient = tx.init(p), jax.jit(jax.value_and_grad(loss_of))
        for i in range(STEPS):
            _, g = gradient(p, X[i], Y[i])
            p, s = update(p, s, g)
    return run


def found(program: Callable[[], None], folder: Path) -> list[Finding]:
    return [f for f in watched(program, Settings(str(folder), ("standstill",))) if f.rule == "J706"]


@pytest.mark.slow
def test_a_schedule_that_ends_in_the_first_epoch_is_the_cause(tmp_path: Path) -> None:
    only, = found(training(optax.sgd(optax.cosine_decay_schedule(1e-2, EPOCH)), donate=True), tmp_path)
    assert only.bearing is Bearing.CAUSE
    assert only.measured["kind"] == "rate"
    assert (only.measured["schedule_end"], only.measured["steps_per_round"]) == (EPOCH, EPOCH)
    assert only.measured["step"] == EPOCH + 1
    assert "the schedule's 10 steps end in round (epoch) 1 of 6" in only.statement
    assert TEXT[(only.where.line or 0) - 1].endswith("# <- update")


def test_a_rate_that_is_left_at_a_remainder_is_seen(tmp_path: Path) -> None:
    tx = optax.sgd(optax.piecewise_constant_schedule(1e-2, {20: 1e-5}))
    only, = found(training(tx), tmp_path)
    assert only.measured["kind"] == "rate"
    assert 0 < only.measured["left"] < 1e-4


def test_the_schedule_of_an_update_that_is_a_function_of_its_own(tmp_path: Path) -> None:
    only, = found(apart(optax.linear_schedule(1e-2, 0.0, 20)), tmp_path)
    assert only.measured["kind"] == "rate"
    assert only.measured["schedule_end"] == 20


@pytest.mark.slow
def test_updates_that_are_masked_are_a_sign(tmp_path: Path) -> None:
    off = optax.conditionally_transform(optax.set_to_zero(), lambda count: count >= 20)
    only, = found(training(optax.chain(optax.sgd(1e-2, momentum=0.9), off)), tmp_path)
    assert (only.bearing, only.measured["kind"]) == (Bearing.SIGN, "gradient")
    assert "everything is masked" in only.statement


@pytest.mark.parametrize("tx", [optax.sgd(optax.cosine_decay_schedule(1e-2, STEPS)), optax.sgd(1e-2),
                                optax.MultiSteps(optax.sgd(1e-2), 4)], ids=("whole run", "constant", "accumulated"))
def test_trainings_that_move_to_the_end_are_left_alone(tx: Any, tmp_path: Path) -> None:
    assert found(training(tx), tmp_path) == []


@pytest.mark.slow
def test_a_problem_that_is_solved_is_left_alone(tmp_path: Path) -> None:
    assert found(training(optax.sgd(0.2), 3 * STEPS, noise=False), tmp_path) == []


@pytest.mark.slow
def test_gradients_and_update_apart_with_a_constant_rate_are_left_alone(tmp_path: Path) -> None:
    assert found(apart(1e-2), tmp_path) == []


def test_factors_of_counters_alone_are_found() -> None:
    def step(w: Any, x: Any, count: Any, key: Any) -> Any:
        rate = jnp.where(count < 5, 0.1, 0.0)
        return w - rate * x * jax.random.normal(key, x.shape), x.sum() * w

    jaxpr = jax.make_jaxpr(step)(jnp.ones(3), jnp.ones(3), 0, jax.random.key(0))
    early, late = (sorted(f.value for f in factors(jaxpr, {2: np.int32(n)}).values()) for n in (1, 9))
    assert min(early) == pytest.approx(0.1)
    assert late == [0.0] * len(late)
    assert factors(jaxpr, {}) == {}


def test_few_or_broken_distances_say_nothing() -> None:
    steps = list(range(1, 42))
    moved = np.r_[np.ones(15), np.zeros(25)]
    told = standstill(steps, moved)
    assert told is not None
    assert (told.moved, told.since, told.last) == (15, 16, 41)
    assert standstill(steps, np.where(moved > 0, moved, np.nan)) is None
    assert standstill([1], np.empty(0)) is None
    assert standstill(steps, np.zeros(40)) is None
    assert standstill(steps, np.r_[np.ones(8), np.zeros(14), np.ones(4), np.zeros(14)]) is None
    assert standstill(steps, np.r_[np.ones(36), np.zeros(4)]) is None
    assert rounds([25] * 8) == 25
    assert rounds([1] * 9) is None
    assert rounds([3, 50, 7, 9]) is None


def test_arguments_of_changing_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def program() -> None:
        step, predict = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda v: (x @ v).sum())(w)), jax.jit(jnp.dot)
        w = jnp.ones(4)
        for i in range(8):
            x = np.ones((3 + 1000 * (i % 2), 4), np.float32)
            w = step(w, x)
            predict(x, w)

    watched(program, Settings(str(tmp_path), ("standstill",)))
    assert "is off" not in capsys.readouterr().err
