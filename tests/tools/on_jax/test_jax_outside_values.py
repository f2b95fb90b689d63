"""Values from outside that compiled code keeps although they changed are named; what does it right is left alone."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
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
from traindx_tools.on_jax.outside.reading import outside_reads

TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()
RATE = 0.1
LEVEL = {"now": 1, "best": 0}


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def seen(program: Callable[[], Any], folder: Path) -> list[Finding]:
    return [f for f in watched(program, Settings(str(folder), ("always",))) if f.rule == "J707"]


@dataclass
class Config:
    beta: float = 0.0
    warm: bool = False
    gamma: float = 0.5
    steps: int = 0


class Agent:
    def __init__(self) -> None:
        self.config, self.temperature, self.seen = Config(), 1.0, 0

    @property
    def weight(self) -> float:
        return self.config.beta * 2  # <- through_a_property

    def scaled(self, x: Any) -> Any:
        return x * self.weight

    def step(self, x: Any) -> Any:
        return self.scaled(x).sum()


# ---- faulty


def in_a_closure() -> None:
    rate, p = 0.1, jnp.ones(3)

    @jax.jit
    def step(p: Any) -> Any:
        return p - rate * p  # <- in_a_closure

    for _ in range(6):
        p = step(p)
        rate *= 0.5


def a_global() -> None:
    global RATE
    RATE, p = 0.1, jnp.ones(3)

    def update(p: Any) -> Any:
        return p - RATE * p  # <- a_global

    @jax.jit
    def step(p: Any) -> Any:
        return update(p)

    for _ in range(6):
        p = step(p)
        RATE = RATE * 0.5


def an_attribute() -> None:
    config = Config()

    def loss(p: Any, x: Any) -> Any:
        return (p * x).sum() + config.beta * (p * p).sum()  # <- an_attribute

    @jax.jit
    def step(p: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(p, x)
        return p - 0.1 * gradient, value

    p = jnp.ones(3)
    for i in range(6):
        p, _ = step(p, jnp.ones(3))
        config.beta = min(1.0, (i + 1) / 4)


def an_entry() -> None:
    config = {"kl": 0.0, "name": "a"}

    @jax.jit
    def step(p: Any) -> Any:
        return p * config.get("kl", 1.0)  # <- an_entry

    for i in range(6):
        step(jnp.ones(3))
        config["kl"] = i + 1.0


def through_a_property() -> None:
    agent = Agent()
    compiled = jax.jit(agent.step)
    for i in range(6):
        compiled(jnp.ones(3))
        agent.config.beta = i + 1.0


def handed_on() -> None:
    settings = SimpleNamespace(temperature=2.0)

    def body(carry: Any, x: Any, told: Any) -> Any:
        return carry + x / told.temperature, x  # <- handed_on

    @jax.jit
    def step(p: Any, xs: Any) -> Any:
        return jax.lax.scan(lambda c, x: body(c, x, settings), p, xs)[0]

    for _ in range(6):
        step(jnp.ones(()), jnp.ones(4))
        settings.temperature *= 0.9


def a_partial() -> None:
    config = Config(gamma=0.9)

    def step(p: Any, config: Any) -> Any:
        return p * config.gamma  # <- a_partial

    compiled = jax.jit(functools.partial(step, config=config))
    for _ in range(6):
        compiled(jnp.ones(3))
        config.gamma *= 0.9


def a_default() -> None:
    config = {"gamma": 0.9}

    @jax.jit
    def step(p: Any, config: Any = config) -> Any:
        return p * config["gamma"]  # <- a_default

    for _ in range(6):
        step(jnp.ones(3))
        config["gamma"] *= 0.9


def an_array() -> None:
    weights = np.ones(3, np.float32)

    @jax.jit
    def step(p: Any) -> Any:
        return p * weights  # <- an_array

    for _ in range(6):
        step(jnp.ones(3))
        weights *= 0.9


def within_equinox() -> None:
    eqx = pytest.importorskip("equinox")
    config = Config(gamma=0.9)

    @eqx.filter_jit
    def step(p: Any, config_of_another: Any) -> Any:
        return p * config.gamma  # <- within_equinox

    for _ in range(6):
        step(jnp.ones(3), None)
        config.gamma *= 0.9


def within_nnx() -> None:
    nnx = pytest.importorskip("flax.nnx")
    config = Config(gamma=0.9)

    @nnx.jit
    def step(p: Any) -> Any:
        return p * config.gamma  # <- within_nnx

    for _ in range(6):
        step(jnp.ones(3))
        config.gamma *= 0.9


FAULTY = {in_a_closure: "rate", a_global: "RATE", an_attribute: "config.beta", an_entry: "config['kl']",
          handed_on: "settings.temperature", through_a_property: "self.config.beta", a_partial: "config.gamma",
          a_default: "config['gamma']", an_array: "weights",
          within_equinox: "config.gamma", within_nnx: "config.gamma"}


@pytest.mark.slow
@pytest.mark.parametrize("program", FAULTY, ids=lambda p: p.__name__)
def test_faulty(program: Callable[[], Any], tmp_path: Path) -> None:
    found = seen(program, tmp_path)
    assert [(f.where.line, f.measured["value"]) for f in found] == [(line(program.__name__), FAULTY[program])]
    assert "keeps the old one" in found[0].statement


@pytest.mark.slow
def test_says_both_values(tmp_path: Path) -> None:
    found = seen(in_a_closure, tmp_path)[0]
    assert (found.measured["was"], found.measured["now"]) == ("0.1", "0.0125")


# ---- healthy


def an_argument() -> None:
    rate, p = 0.1, jnp.ones(3)
    step = jax.jit(lambda p, rate: p - rate * p)
    for _ in range(6):
        p = step(p, rate)
        rate *= 0.5


def compiled_anew() -> None:
    rate, p = 0.1, jnp.ones(3)
    step = jax.jit(lambda p, again: p - rate * p, static_argnums=1)
    for i in range(6):
        rate *= 0.5
        p = step(p, i)


def made_anew() -> None:
    for rate in (0.1, 0.05, 0.02):
        def step(p: Any, rate: float = rate) -> Any:
            return p - rate * p

        compiled = jax.jit(step)
        for _ in range(6):
            compiled(jnp.ones(3))


def printed_and_counted() -> None:
    told, counts = {"epoch": 0, "loss": 0.0}, {"traces": 0}
    history: list[float] = []

    @jax.jit
    def step(p: Any) -> Any:
        counts["traces"] += 1
        if told["epoch"] == 0:
            print("traced")
        print(f"epoch {told['epoch']}", told["loss"])
        assert told["epoch"] < 100
        history.append(0.0)
        return p * 2

    for i in range(8):
        step(jnp.ones(3))
        told["epoch"], told["loss"] = i, 1.0 / (i + 1)
        counts["traces"] += 1
        history.append(1.0)


def behind_a_condition() -> None:
    config = Config(warm=False)

    def loss(p: Any, train: bool) -> Any:
        if config.warm:
            p = p * config.beta
        if train:
            p = p + config.gamma
        return p * (config.beta if config.warm else 1.0)

    step = jax.jit(lambda p, flag: jax.lax.cond(True, lambda q: loss(q, flag), lambda q: q, p), static_argnums=1)
    for i in range(6):
        step(jnp.ones(3), False)
        config.beta = config.gamma = float(i)


def own_name() -> None:
    rate = 0.1

    @jax.jit
    def step(p: Any) -> Any:
        for rate in (1.0, 2.0):
            p = p * rate
        return p

    for _ in range(6):
        step(jnp.ones(3))
        rate *= 0.5


def taken_back() -> None:
    config = Config(gamma=1.0)

    @jax.jit
    def step(p: Any) -> Any:
        return p * config.gamma

    for i in range(12):
        config.gamma = 0.0 if i % 3 == 2 else 1.0
        step(jnp.ones(3))


def shape_only() -> None:
    table = np.ones((3, 4), np.float32)

    @jax.jit
    def step(p: Any) -> Any:
        return p * table.shape[0] + len(table)

    for _ in range(6):
        step(jnp.ones(3))
        table *= 0.5


def a_tree_of_parameters() -> None:
    """An old state: J705 looks for it, where it is one."""
    params = {"w": jnp.ones(3), "b": jnp.zeros(3)}

    @jax.jit
    def first(p: Any) -> Any:
        return p * params["w"] + params["b"]

    for _ in range(6):
        first(jnp.ones(3))
        params = {name: value * 0.5 for name, value in params.items()}


def used_for_another_kind() -> None:
    scale = 2.0

    @jax.jit
    def step(p: Any) -> Any:
        return p * scale

    step(jnp.ones(3))
    scale = "the end"
    for _ in range(5):
        step(jnp.ones(3))


@pytest.mark.slow
@pytest.mark.parametrize("program", [an_argument, compiled_anew, made_anew, printed_and_counted, behind_a_condition,
                                     own_name, taken_back, shape_only, a_tree_of_parameters, used_for_another_kind],
                         ids=lambda p: p.__name__)
def test_healthy(program: Callable[[], Any], tmp_path: Path) -> None:
    assert seen(program, tmp_path) == []


# ---- broken


def test_functions_without_a_source(tmp_path: Path) -> None:
    space: dict[str, Any] = {"rate": 0.1}
    exec("def step(p):\n    return p * rate\n", space)
    assert outside_reads(space["step"]) == []
    assert outside_reads(len) == []
    assert outside_reads(functools.partial(print, sep=" ")) == []


def test_a_cell_that_is_not_filled() -> None:
    def step(p: Any) -> Any:
        return p * later

    assert outside_reads(step) == []
    later = 1.0
    assert [str(r.path) for r in outside_reads(step)] == ["later"]


def test_an_attribute_that_would_run_code() -> None:
    class Odd:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    odd = Odd()
    assert outside_reads(lambda p: p * odd.rate) == []
