"""Large arrays that a promotion makes wider are named with their line and size; casts and weak types are left alone."""

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
import numpy as np
from watching import watched

from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.summary import summarise
from traindx_tools.on_jax.summary.promotions import promotions
from traindx_tools.on_jax.tracing import trace

W = jax.ShapeDtypeStruct((2048, 1024), jnp.bfloat16)
X = jax.ShapeDtypeStruct((8192, 2048), jnp.bfloat16)
SCALE = jax.ShapeDtypeStruct((2048,), jnp.float32)
TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()
Fn = Callable[[Any, Any, Any], Any]


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def by_a_scale(w: Any, x: Any, s: Any) -> Any:
    h = x * s  # <- by_a_scale
    return jax.nn.relu(h) @ w


def by_a_numpy_scalar(w: Any, x: Any, s: Any) -> Any:
    h = jax.nn.gelu(x) * np.float32(0.5)  # <- by_a_numpy_scalar
    return h @ w


def in_a_jit(w: Any, x: Any, s: Any) -> Any:
    h = jax.jit(lambda x: jax.nn.relu(x + s))(x)  # <- in_a_jit
    return h @ w


def in_a_gradient(w: Any, x: Any, s: Any) -> Any:
    return jax.value_and_grad(lambda w: ((x * s) @ w).sum())(w)  # <- in_a_gradient


def before_a_loop(w: Any, x: Any, s: Any) -> Any:
    h = x + s  # <- before_a_loop
    return jax.lax.scan(lambda c, row: (c + row.sum(), None), 0.0, h)[0]


@pytest.mark.parametrize("fn", [by_a_scale, by_a_numpy_scalar, in_a_jit, in_a_gradient, before_a_loop],
                         ids=lambda f: f.__name__)
def test_a_promotion_is_named_with_its_line_and_size(fn: Fn) -> None:
    seen = summarise(fn, (W, X, SCALE))
    (found,) = [f for f in seen.findings if f.rule == "J504"]
    assert (found.where.line, found.measured["added_mib"]) == (line(fn.__name__), 32.0)
    assert (found.measured["before"], found.measured["after"]) == ("bfloat16", "float32")
    assert "because it meets float32[" in seen.look[0]
    assert "+32 MiB" in seen.look[0]


def cast_by_hand(w: Any, x: Any, s: Any) -> Any:
    return (x.astype(jnp.float32) * s) @ jnp.asarray(w, jnp.float32)


def cast_in_other_words(w: Any, x: Any, s: Any) -> Any:
    return (jax.lax.convert_element_type(x, jnp.float32) * s) @ jnp.float32(w)


def normalised_in_float32(w: Any, x: Any, s: Any) -> Any:
    mean = (x.astype(jnp.float32) ** 2).mean(-1, keepdims=True)
    return (x * jax.lax.rsqrt(mean + 1e-6) * s).astype(x.dtype) @ w


def python_numbers(w: Any, x: Any, s: Any) -> Any:
    return jax.nn.softmax(x * 2.0 + 1) @ w


def loss_in_float32(w: Any, x: Any, s: Any) -> Any:
    return (x @ w - s[:1024]).mean()


@pytest.mark.parametrize("fn", [cast_by_hand, cast_in_other_words, normalised_in_float32, python_numbers,
                                loss_in_float32], ids=lambda f: f.__name__)
def test_what_is_meant_is_left_alone(fn: Fn) -> None:
    assert promotions(trace(fn, (W, X, SCALE)).jaxpr) == []


def test_small_arrays_are_left_alone() -> None:
    small = jax.ShapeDtypeStruct((64, 2048), jnp.bfloat16)
    assert promotions(trace(by_a_scale, (W, small, SCALE)).jaxpr) == []
    middling = jax.ShapeDtypeStruct((512, 2048), jnp.bfloat16)
    seen = summarise(by_a_scale, (W, middling, SCALE))
    assert seen.findings == ()
    assert any("+2 MiB" in look for look in seen.look)


def test_a_network_and_its_optimizer_in_half_precision_are_left_alone() -> None:
    linen, optax = pytest.importorskip("flax.linen"), pytest.importorskip("optax")
    net = linen.Sequential([linen.Dense(2048, dtype=jnp.bfloat16), linen.LayerNorm(dtype=jnp.bfloat16), linen.gelu,
                            linen.Dense(64, dtype=jnp.bfloat16)])
    tx = optax.adamw(1e-3, mu_dtype=jnp.float32)
    params = jax.eval_shape(net.init, jax.random.key(0), X)
    state = jax.eval_shape(tx.init, params)

    def step(p: Any, s: Any, x: Any) -> Any:
        loss, g = jax.value_and_grad(lambda p: (net.apply(p, x).astype(jnp.float32) ** 2).mean())(p)
        updates, s = tx.update(g, s, p)
        return optax.apply_updates(p, updates), s, loss

    assert promotions(trace(step, (params, state, X)).jaxpr) == []


def test_layers_without_a_dtype_promote_their_input() -> None:
    linen = pytest.importorskip("flax.linen")
    net = linen.Dense(64)
    params = jax.eval_shape(net.init, jax.random.key(0), X)
    (found,) = promotions(trace(lambda p, x: net.apply(p, x), (params, X)).jaxpr)
    assert (found.before, found.other) == ("bfloat16", "float32[2048,64]")


def test_a_run_names_it_when_it_is_compiled(tmp_path: Path) -> None:
    def program(scale: Any) -> None:
        step = jax.jit(lambda x, s: (x * s) @ jnp.ones((1024, 2), x.dtype))  # <- run
        step(jnp.ones((8192, 1024), jnp.bfloat16), scale)

    found = watched(lambda: program(jnp.ones(1024)), Settings(str(tmp_path / "wide"), ("always",)))
    assert [(f.rule, f.where.line) for f in found] == [("J504", line("run"))]
    assert watched(lambda: program(jnp.ones(1024, jnp.bfloat16)), Settings(str(tmp_path / "half"), ("always",))) == ()
