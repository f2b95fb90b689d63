"""Keys that a function uses more than once are named with both places; functions that do it right are silent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parent / "planted"))

import jax
import jax.numpy as jnp
from jax_keys import FINE, KEY, MISSED, REUSED, Keyed

from traindx_tools.on_jax.keys.find import find_key_reuse
from traindx_tools.on_jax.keys.flow import follow
from traindx_tools.on_jax.tracing import trace


def test_there_are_enough_examples() -> None:
    assert len(REUSED) >= 30
    assert len(FINE) >= 20
    assert len(REUSED) + len(FINE) >= 40
    assert {c.name for c in REUSED} >= MISSED


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in REUSED if c.name in MISSED], ids=lambda c: c.name)
def test_what_the_checker_of_jax_misses_is_named_by_ours(case: Keyed) -> None:
    checking = getattr(jax, "debug_key_reuse", None)
    if checking is None:
        pytest.skip("this release of JAX has no checker")
    with checking(True):
        jax.block_until_ready(jax.jit(case.fn)(*(jax.random.clone(a) if a is KEY else a for a in case.args)))
    assert find_key_reuse(case.fn, *case.args)


@pytest.mark.parametrize("case", REUSED, ids=lambda c: c.name)
def test_a_reused_key_is_named(case: Keyed) -> None:
    found = find_key_reuse(case.fn, *case.args)
    assert case.rule in {f.rule for f in found}
    assert {f.where.line for f in found} <= case.lines
    firsts = {f.measured["first_line"] for f in found if f.rule == "J201"}
    assert firsts <= case.lines


@pytest.mark.parametrize("case", FINE, ids=lambda c: c.name)
def test_keys_that_are_used_once_are_silent(case: Keyed) -> None:
    assert find_key_reuse(case.fn, *case.args) == []


def test_types_are_enough() -> None:
    case = next(c for c in REUSED if c.name == "two_draws")
    assert len(find_key_reuse(case.fn, jax.eval_shape(lambda: KEY))) == 1


def test_draws_that_depend_on_no_argument_are_told() -> None:
    def step(x: jax.Array) -> jax.Array:
        return x * jax.random.bernoulli(jax.random.PRNGKey(3), 0.5, x.shape)

    traced = trace(step, (jnp.ones(3),))
    assert [u.use for u in follow(traced).constant_draws()] == ["draw"]
    assert follow(trace(REUSED[0].fn, (KEY,))).constant_draws() == []


def test_flax_dropout_with_two_layers_is_silent() -> None:
    pytest.importorskip("flax")
    pytest.importorskip("optax")
    from jax_networks import linen_step

    assert find_key_reuse(*linen_step()) == []
