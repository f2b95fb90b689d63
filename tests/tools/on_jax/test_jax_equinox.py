"""Arguments of functions under `equinox.filter_jit` have the names that their author gave them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
pytest.importorskip("equinox")
sys.path.insert(0, str(Path(__file__).parent))

import equinox as eqx
import jax
import jax.numpy as jnp
from watching import watched

from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.equinox_names import equinox_names
from traindx_tools.on_jax.tracing import argument_names


def names_of(made: Any, *args: Any, **kwargs: Any) -> list[str]:
    """What jit is handed by a `filter_jit`, named."""
    kept: list[list[str]] = []
    wrapper = eqx.filter_jit(made)
    cached = wrapper._cached

    def call(*given: Any) -> Any:
        kept.append(argument_names(cached.__wrapped__, given, {}))
        return cached(*given)

    object.__setattr__(wrapper, "_cached", call)
    wrapper(*args, **kwargs)
    return [n for n in kept[0] if not n.startswith("static")]


@pytest.mark.slow
def test_arrays_have_the_names_of_the_parameters() -> None:
    def step(net: Any, batch: Any, *, scale: Any) -> Any:
        return jax.vmap(net)(batch["x"]) * scale

    net = eqx.nn.Linear(2, 3, key=jax.random.key(0))
    told = names_of(step, net, {"x": jnp.ones((4, 2)), "kind": "train"}, scale=jnp.ones(()))
    assert sorted(told) == ["batch['x']", "net.bias", "net.weight", "scale"]


def test_a_module_that_is_called_itself_is_self() -> None:
    told = names_of(eqx.nn.Linear(2, 3, key=jax.random.key(0)), jnp.ones(2))
    assert {n.split("[")[0] for n in told} >= {"self.weight", "self.bias"}


@pytest.mark.slow
def test_the_key_of_every_step_is_named(tmp_path: Path) -> None:
    def program() -> None:
        @eqx.filter_jit
        def step(p: Any, noise_key: Any) -> Any:
            g = jax.grad(lambda p: ((p + jax.random.normal(noise_key, p.shape)) ** 2).sum())(p)
            return p - 0.01 * g

        p, key = jnp.ones(4), jax.random.key(0)
        for _ in range(8):
            p = step(p, key)

    found = [f for f in watched(program, Settings(str(tmp_path), ("always",))) if f.rule == "J203"]
    assert [f.measured["argument"] for f in found] == ["noise_key"]


def test_other_functions_and_broken_structures_keep_their_names() -> None:
    def plain(a: Any, b: Any, c: Any) -> None:
        """Three arguments of no equinox."""

    assert argument_names(plain, ({"first": (1.0,)}, {"rest": (2.0,)}, 3.0), {})[0] == "a['first'][0]"
    plain.__module__ = "equinox._jit"
    assert equinox_names(plain, ({"first": (1.0,)}, {"rest": (2.0,)}, (((), None),) * 3), []) == {}
    assert equinox_names(plain, (1, 2), []) == {}
