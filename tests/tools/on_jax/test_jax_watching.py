"""A JAX program under the instruments: same results, the call that went wrong is found, healthy programs are silent."""

from __future__ import annotations

import copy
import functools
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
from watching import origin_of, watched

from traindx_tools.live.settings import Settings

X = jnp.asarray(np.random.default_rng(1).normal(size=(8, 4)), jnp.float32)
BAD = 5


def program(*, bad: bool = True, donate: bool = False, steps: int = 9) -> Callable[[], Any]:
    """A training loop whose targets are 0 in one step, so that a logarithm is infinite."""

    def run() -> Any:
        tx = optax.adam(1e-2)

        def loss_fn(p: Any, x: Any, scale: Any) -> Any:
            q = jax.nn.sigmoid(x @ p["w"]) * scale
            return -jnp.log(q).mean()  # <- origin

        def step(p: Any, s: Any, x: Any, scale: Any) -> Any:
            loss, grads = jax.value_and_grad(loss_fn)(p, x, scale)
            updates, s = tx.update(grads, s, p)
            return optax.apply_updates(p, updates), s, loss

        compiled = jax.jit(step, donate_argnums=(0, 1) if donate else ())
        params = {"w": jnp.ones((4, 1))}
        state = tx.init(params)
        losses = []
        for i in range(steps):
            params, state, loss = compiled(params, state, X, jnp.float32(0.0 if bad and i == BAD else 1.0))
            losses.append(float(loss))
        return losses

    return run


LINE = next(i for i, text in enumerate(Path(__file__).read_text(encoding="utf-8").splitlines(), 1)
            if text.endswith("# <- origin"))


@pytest.mark.slow
@pytest.mark.parametrize("donate", [False, True])
def test_the_equation_of_the_call_is_named(donate: bool, tmp_path: Path) -> None:
    found = origin_of(program(donate=donate), tmp_path)
    assert found is not None
    assert (found.where.line, found.measured["op"], found.where.step) == (LINE, "log", BAD + 1)


def test_a_healthy_program_is_silent_and_its_results_are_the_same(tmp_path: Path) -> None:
    kept: list[Any] = []
    plain = program(bad=False)()
    assert watched(lambda: kept.append(program(bad=False)()), Settings(str(tmp_path), ("all",))) == ()
    assert kept == [plain]


def test_an_eager_gradient_is_watched(tmp_path: Path) -> None:
    def run() -> None:
        w = jnp.ones(4)
        for i in range(6):
            _, g = jax.value_and_grad(lambda w, s: jnp.sqrt((w * s) ** 2).sum())(w, jnp.float32(i != 3))
            w = w - 0.1 * g

    found = origin_of(run, tmp_path)
    assert found is not None
    assert found.measured["reason"] == "sqrt-at-zero"


@pytest.mark.parametrize("eager", [False, True], ids=["jitted", "eager"])
@pytest.mark.parametrize("bad", [False, True], ids=["healthy", "bad"])
def test_the_last_of_many_short_steps_is_looked_at(eager: bool, bad: bool, tmp_path: Path) -> None:
    def loss(w: Any, s: Any) -> Any:
        return jnp.log((w ** 2).sum() * s)

    def run() -> None:
        gradient = jax.value_and_grad(loss)
        step = gradient if eager else jax.jit(lambda w, s: (lambda v, g: (w - 1e-3 * g, v))(*gradient(w, s)))
        w = jnp.ones(4)
        for i in range(60):
            first, second = step(w, jnp.float32(-1.0 if bad and i >= 58 else 1.0))
            w = w - 1e-3 * second if eager else first

    found = watched(run, Settings(str(tmp_path), ("nonfinite",)))
    assert [f.rule for f in found] == (["J102"] if bad else [])


def test_a_metric_over_nothing_is_only_remarked(tmp_path: Path) -> None:
    def run() -> None:
        @jax.jit
        def step(p: Any, x: Any) -> Any:
            g = jax.grad(lambda p: ((x @ p) ** 2).mean())(p)
            empty = jnp.zeros(0)
            return p - 0.01 * g, {"loss": ((x @ p) ** 2).mean(), "recall": empty.mean()}

        p = jnp.ones(4)
        for _ in range(6):
            p, _ = step(p, X)

    found = watched(run, Settings(str(tmp_path), ("nonfinite",)))
    assert {f.severity.value for f in found} <= {"info"}


def test_a_start_value_of_infinity_is_no_fault(tmp_path: Path) -> None:
    def run() -> None:
        @jax.jit
        def step(state: Any, x: Any) -> Any:
            return {"best": jnp.minimum(state["best"], (x ** 2).mean()), "never": state["never"]}

        state = {"best": jnp.float32(jnp.inf), "never": jnp.float32(jnp.inf)}
        for i in range(6):
            state = step(state, X * i)

    assert watched(run, Settings(str(tmp_path), ("all",))) == ()


def test_what_jit_makes_is_still_a_jitted_function(tmp_path: Path) -> None:
    told: list[Any] = []

    def run() -> None:
        class Model:
            scale = 2.0

            @functools.partial(jax.jit, static_argnums=0)
            def scaled(self, x: Any) -> Any:
                return x * self.scale

        told.append(float(Model().scaled(jnp.float32(2.0))))
        f = jax.jit(np_free, static_argnums=1)
        told.append(float(f(jnp.float32(1.0), 3)))
        told.append(f.lower(jnp.float32(1.0), 3).as_text() != "")
        told.append(f.__name__)
        told.append(f.__wrapped__ is np_free)
        told.append(float(jax.grad(lambda x: f(x, 3))(jnp.float32(1.0))))
        told.append(float(jax.vmap(lambda x: f(x, 3))(jnp.ones(2)).sum()))
        told.append(float(jax.jit(f, static_argnums=1)(jnp.float32(1.0), 3)))
        told.append(float(copy.deepcopy(f)(jnp.float32(1.0), 3)))
        told.append(isinstance(f, jax.stages.Wrapped))

    watched(run, Settings(str(tmp_path), ("all",)))
    assert told == [4.0, 3.0, True, "np_free", True, 3.0, 6.0, 3.0, 3.0, True]


def np_free(x: Any, n: int) -> Any:
    """A function with a static argument."""
    return x * n


def test_functions_made_while_attached_go_on_after_it(tmp_path: Path) -> None:
    made: list[Any] = []
    watched(lambda: made.append(jax.jit(lambda x: x + 1)), Settings(str(tmp_path), ("all",)))
    assert float(made[0](jnp.float32(1.0))) == 2.0
    assert type(jax.jit(lambda x: x)) is not type(made[0])


def test_a_program_that_fails_fails_in_the_same_way(tmp_path: Path) -> None:
    told: list[BaseException] = []

    def run() -> None:
        try:
            jax.jit(lambda x: x @ jnp.ones((9, 9)))(jnp.ones(3))
        except TypeError as error:
            told.append(error)

    watched(run, Settings(str(tmp_path), ("all",)))
    assert len(told) == 1
