"""Attributes that a compiled method keeps although they changed are named; objects that do it right are silent."""

from __future__ import annotations

import functools
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

TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def seen(program: Callable[[], Any], folder: Path) -> list[Finding]:
    return [f for f in watched(program, Settings(str(folder), ("always",))) if f.severity.rank >= 1]


def make() -> Any:
    """The class is made in the program, where `jax.jit` is watched."""

    class Trainer:
        def __init__(self) -> None:
            self.lr, self.params, self.noise = 0.1, jnp.ones(3), np.ones(3)
            self.compiled = jax.jit(self.bound)
            self.steps = 0

        @functools.partial(jax.jit, static_argnums=0)
        def rate(self, p: Any) -> Any:
            return p - self.lr * p  # <- rate

        def bound(self, x: Any) -> Any:
            return self.predict(x).sum()

        def predict(self, x: Any) -> Any:
            return x * self.params  # <- bound

        @functools.partial(jax.jit, static_argnames="self")
        def noisy(self, p: Any) -> Any:
            def add(p: Any) -> Any:
                return p + self.noise  # <- noisy

            return add(p)

        @functools.partial(jax.jit, static_argnums=0)
        def unread(self, p: Any, state: Any) -> Any:
            return p * self.lr + state.steps

    return Trainer()


def rate() -> None:
    trainer, p = make(), jnp.ones(3)
    for _ in range(6):
        p = trainer.rate(p)
        trainer.lr *= 0.5


def bound() -> None:
    trainer = make()
    for _ in range(6):
        trainer.compiled(jnp.ones(3))
        trainer.params = trainer.params * 0.9


def noisy() -> None:
    trainer = make()
    for _ in range(6):
        trainer.noisy(jnp.ones(3))
        trainer.noise += 1.0


FROZEN = [(rate, "lr"), (bound, "params"), (noisy, "noise")]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "attribute"), FROZEN, ids=lambda v: getattr(v, "__name__", v))
def test_what_the_compiled_code_keeps_is_named_with_its_line(program: Any, attribute: str, tmp_path: Path) -> None:
    found = seen(program, tmp_path)
    assert [(f.rule, f.where.line, f.measured["attribute"]) for f in found] == [
        ("J704", line(program.__name__), attribute)]


def test_the_old_and_the_new_value_are_told(tmp_path: Path) -> None:
    (found,) = seen(rate, tmp_path)
    assert (found.measured["was"], found.measured["now"]) == ("0.1", "0.0125")
    assert "Trainer.lr = 0.1" in found.statement


def arguments_instead() -> None:
    class Holder:
        def __init__(self) -> None:
            self.lr = 0.1
            self.step = jax.jit(lambda p, lr: p - lr * p)

    holder, p = Holder(), jnp.ones(3)
    for _ in range(6):
        p = holder.step(p, holder.lr)
        holder.lr *= 0.5


def attributes_that_are_not_read() -> None:
    @jax.tree_util.register_pytree_node_class
    class State:
        def __init__(self, steps: Any) -> None:
            self.steps = steps

        def tree_flatten(self) -> Any:
            return (self.steps,), None

        @classmethod
        def tree_unflatten(cls, _: Any, children: Any) -> Any:
            return cls(*children)

    trainer = make()
    for i in range(6):
        trainer.unread(jnp.ones(3), State(jnp.float32(i)))
        trainer.steps += 1
        trainer.params = trainer.params * 0.9


def equal_arrays_made_again() -> None:
    trainer = make()
    for _ in range(6):
        trainer.compiled(jnp.ones(3))
        trainer.params = jnp.ones(3)


def a_switch_that_is_part_of_the_hash() -> None:
    class Model:
        training = True

        def __hash__(self) -> int:
            return hash(self.training)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Model) and self.training == other.training

        @functools.partial(jax.jit, static_argnums=0)
        def run(self, x: Any) -> Any:
            return x * 2 if self.training else x

    model = Model()
    for i in range(12):
        model.training = i % 4 < 2
        model.run(jnp.ones(3))


def another_object_for_another_rate() -> None:
    one = type(make())
    for value in (0.1, 0.2, 0.3):
        trainer = one()
        trainer.lr = value
        for _ in range(3):
            trainer.rate(jnp.ones(3))


HEALTHY = [arguments_instead, attributes_that_are_not_read, equal_arrays_made_again, a_switch_that_is_part_of_the_hash,
           another_object_for_another_rate]


@pytest.mark.slow
@pytest.mark.parametrize("program", HEALTHY, ids=lambda f: f.__name__)
def test_objects_whose_state_arrives_are_silent(program: Any, tmp_path: Path) -> None:
    assert seen(program, tmp_path) == []


def test_a_method_without_source_costs_nothing(tmp_path: Path) -> None:
    made: dict[str, Any] = {}
    exec("def step(self, x):\n    return x * self.lr", made)

    class Other:
        step = functools.partial(jax.jit, static_argnums=0)(made["step"])

        def __init__(self) -> None:
            self.lr = 0.5

    def program() -> None:
        other = Other()
        told = []
        for _ in range(5):
            told.append(float(other.step(jnp.float32(2.0))))
            other.lr *= 0.5
        assert told == [1.0] * 5

    assert seen(program, tmp_path) == []
