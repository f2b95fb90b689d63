"""Keys that a function uses more than once are named with both places; functions that do it right are silent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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


@pytest.mark.slow
def test_flax_dropout_with_two_layers_is_silent() -> None:
    pytest.importorskip("flax")
    pytest.importorskip("optax")
    from jax_networks import linen_step

    assert find_key_reuse(*linen_step()) == []


# ---- the two calls


def masked(x: Any, key: jax.Array) -> Any:
    return x * jax.random.bernoulli(key, 0.9, x.shape)  # <- helper


def shifted(x: Any, key: jax.Array) -> Any:
    return x + jax.random.normal(key, x.shape)


def one_helper_twice(x: Any, key: jax.Array) -> Any:
    h = masked(x, key)  # <- first of one
    return jax.jit(lambda h: masked(jnp.tanh(h), key))(h)  # <- second of one


def two_helpers(x: Any, key: jax.Array) -> Any:
    h = masked(x, key)  # <- first of two
    return shifted(h, key)  # <- second of two


def one_line_of_a_loop(x: Any, key: jax.Array) -> Any:
    for _ in range(3):
        x = masked(x, key)  # the same line each time
    return x


HERE = Path(__file__).read_text(encoding="utf-8").splitlines()


def line(mark: str) -> int:
    return next(i for i, text in enumerate(HERE, 1) if text.endswith(f"# <- {mark}"))


def test_two_calls_of_one_helper_are_both_named() -> None:
    (found,) = find_key_reuse(one_helper_twice, jnp.ones(3), jax.random.key(0))
    assert (found.where.line, found.measured["first_line"]) == (line("second of one"), line("first of one"))
    assert f":{line('helper')}, called at {__file__}:{line('first of one')}," in found.statement
    assert f"called at {__file__}:{line('second of one')}," in found.statement


def test_calls_of_two_helpers_are_named_beside_their_lines() -> None:
    (found,) = find_key_reuse(two_helpers, jnp.ones(3), jax.random.PRNGKey(0))
    assert found.measured["first_line"] == line("helper")
    assert [str(found.measured[k]).rpartition(":")[2] for k in ("first_call", "second_call")] == [
        str(line("first of two")), str(line("second of two"))]


def test_one_line_that_is_run_again_has_no_second_call() -> None:
    (found,) = find_key_reuse(one_line_of_a_loop, jnp.ones(3), jax.random.key(0))
    assert (found.where.line, found.measured["first_call"]) == (line("helper"), None)


def test_helpers_with_keys_of_their_own_are_silent() -> None:
    def fine(x: Any, key: jax.Array) -> Any:
        one, two = jax.random.split(key)
        return masked(masked(x, one), two)

    assert find_key_reuse(fine, jnp.ones(3), jax.random.key(0)) == []
