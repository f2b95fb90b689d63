"""Members of an ensemble that get one key each are named; split, folded and shared keys are left alone."""

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
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings

TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()
TYPED, RAW = jax.random.key(3), jax.random.PRNGKey(3)


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def seen(program: Callable[[], Any], folder: Path) -> list[Finding]:
    return [f for f in watched(program, Settings(str(folder), ("always",))) if f.severity.rank >= 1]


def init(key: Any) -> Any:
    return {"w": jax.random.normal(key, (4, 3)), "b": jnp.zeros(3)}


@pytest.mark.parametrize("key", [TYPED, RAW], ids=["typed", "raw"])
def test_an_ensemble_of_equal_members_is_named(key: Any, tmp_path: Path) -> None:
    def program() -> None:
        jax.vmap(init)(jnp.stack([key] * 5))  # <- eager

    (found,) = seen(program, tmp_path)
    assert (found.rule, found.where.line, found.measured["argument"]) == ("J205", line("eager"), "key")
    assert "jax.random.split(key, 5)" in found.statement


@pytest.mark.slow
def test_equal_keys_of_a_jitted_function_are_named(tmp_path: Path) -> None:
    def program() -> None:
        sample = jax.jit(lambda keys, x: x + jax.vmap(lambda k: jax.random.normal(k, (2,)))(keys))  # <- jitted
        sample(jnp.stack([TYPED] * 5), jnp.ones((5, 2)))

    found = [f for f in seen(program, tmp_path) if f.rule == "J205"]
    assert [(f.where.line, f.measured["count"]) for f in found] == [(line("jitted"), 5)]


def split_keys() -> None:
    jax.vmap(init)(jax.random.split(TYPED, 5))
    jax.jit(jax.vmap(init))(jax.random.split(RAW, 5))


def folded_with_the_index() -> None:
    def member(key: Any, i: Any) -> Any:
        return init(jax.random.fold_in(key, i))

    jax.vmap(member)(jnp.stack([TYPED] * 5), jnp.arange(5))
    jax.jit(jax.vmap(member))(jnp.stack([RAW] * 5), jnp.arange(5))


def one_key_for_all_on_purpose() -> None:
    jax.vmap(lambda p, k: p * jax.random.normal(k, (3,)), in_axes=(0, None))(jnp.arange(4.0), TYPED)


def numbers_that_look_like_keys() -> None:
    jax.vmap(lambda x: x.astype(jnp.float32).sum())(jnp.arange(8, dtype=jnp.uint32).reshape(4, 2))
    jax.vmap(lambda x: x * 2)(jnp.ones((4, 2), jnp.float32))


def nested_and_with_options() -> None:
    inner = jax.vmap(jax.vmap(lambda x: x + 1.0, in_axes=1, out_axes=1), axis_name="batch")
    inner(jnp.ones((2, 3, 4)))
    jax.vmap(fun=lambda x, *, s: x * s)(jnp.ones(3), s=jnp.ones(3))
    jax.vmap(lambda x: (x, None))(jnp.ones(3))


@pytest.mark.slow
@pytest.mark.parametrize("program", [split_keys, folded_with_the_index, one_key_for_all_on_purpose,
                                     numbers_that_look_like_keys, nested_and_with_options], ids=lambda f: f.__name__)
def test_keys_that_differ_are_silent(program: Callable[[], Any], tmp_path: Path) -> None:
    assert seen(program, tmp_path) == []


def test_errors_of_vmap_are_its_own(tmp_path: Path) -> None:
    told: list[BaseException] = []

    def program() -> None:
        for wrong in (lambda: jax.vmap(init)(1.0), lambda: jax.vmap(None)(jnp.ones(3)), lambda: jax.vmap()):
            try:
                wrong()
            except (TypeError, ValueError) as error:
                told.append(error)

    assert seen(program, tmp_path) == []
    assert len(told) == 3
