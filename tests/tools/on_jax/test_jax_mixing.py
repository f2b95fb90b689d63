"""Samples that depend on each other are found with the line where they meet; batches that stay apart are silent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from traindx_tools.errors import BadUsage
from traindx_tools.on_jax.paths.mixing import sample_dependence

TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()
RNG = np.random.default_rng(3)
X = jnp.asarray(RNG.normal(size=(6, 5)), jnp.float32)
SQUARE = jnp.asarray(RNG.normal(size=(6, 6)), jnp.float32)
TOKENS = jnp.asarray(RNG.integers(0, 9, (6, 7)))
TABLE = jnp.asarray(RNG.normal(size=(9, 4)), jnp.float32)
W = jnp.asarray(RNG.normal(size=(5, 5)), jnp.float32)


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def norm_over_batch(w: Any, x: Any) -> Any:
    h = x @ w
    return (h - h.mean(axis=0)) / (h.std() + 1e-5)  # <- norm_over_batch


def softmax_axis_0(w: Any, x: Any) -> Any:
    return jax.nn.softmax(jnp.tanh(x @ w), axis=0)  # <- softmax_axis_0


def attention_over_samples(w: Any, x: Any) -> Any:
    scores = x @ x.T  # <- attention_over_samples
    return jax.nn.softmax(scores, axis=-1) @ (x @ w)


def reshaped(w: Any, x: Any) -> Any:
    halves = (x @ w).reshape(5, 6)
    return (halves / (1.0 + jnp.abs(halves).sum(axis=1, keepdims=True))).reshape(6, 5)  # <- reshaped


def in_a_scan(w: Any, x: Any) -> Any:
    def layer(h: Any, _: Any) -> tuple[Any, None]:
        h = jnp.tanh(h @ w)
        return h - h.mean(axis=0), None  # <- in_a_scan

    return lax.scan(layer, x, None, length=3)[0]


def under_jit(w: Any, x: Any) -> Any:
    @jax.jit
    def centred(h: Any) -> Any:
        return h - h.max(axis=0)  # <- under_jit

    return centred(x @ w)


def wrong_vmap_axis(x: Any) -> Any:
    return jax.vmap(lambda row: row / jnp.abs(row).sum(), in_axes=1, out_axes=1)(x)  # <- wrong_vmap_axis


def fine(w: Any, x: Any) -> Any:
    h = jax.nn.gelu(x @ w)
    h = (h - h.mean(axis=-1, keepdims=True)) / (h.std(axis=-1, keepdims=True) + 1e-5)
    return {"out": h, "pooled": h.mean(axis=-1), "batch_mean": h.mean()}


def embedded(table: Any, ids: Any) -> Any:
    return jax.nn.softmax(jnp.einsum("bte,bse->bts", table[ids], table[ids]), axis=-1)


def scanned(w: Any, x: Any) -> Any:
    return jax.vmap(lambda row: lax.scan(lambda h, _: (jnp.tanh(h @ w), h.sum()), row, None, length=4)[1])(x)


def convolved(x: Any) -> Any:
    return lax.conv_general_dilated(x[:, None, :], jnp.ones((2, 1, 3)), (1,), "SAME")


FAULTY = [(norm_over_batch, (W, X)), (softmax_axis_0, (W, X)), (attention_over_samples, (W, X)), (reshaped, (W, X)),
          (in_a_scan, (W, X)), (under_jit, (W, X)), (wrong_vmap_axis, (SQUARE,))]
HEALTHY = [(fine, (W, X)), (embedded, (TABLE, TOKENS)), (scanned, (W, X)), (convolved, (X,))]
Fn = Callable[..., Any]


@pytest.mark.slow
@pytest.mark.parametrize(("fn", "args"), FAULTY, ids=lambda v: getattr(v, "__name__", ""))
def test_the_equation_where_samples_meet_is_named(fn: Fn, args: tuple[Any, ...]) -> None:
    found = sample_dependence(fn, *args, in_axes=(None, 0)[-len(args):])
    assert [(f.rule, f.where.line) for f in found] == [("J401", line(fn.__name__))]
    assert found[0].measured["samples"] == 6


@pytest.mark.slow
@pytest.mark.parametrize(("fn", "args"), HEALTHY, ids=lambda v: getattr(v, "__name__", ""))
def test_samples_that_stay_apart_are_silent(fn: Fn, args: tuple[Any, ...]) -> None:
    assert sample_dependence(fn, *args, in_axes=(None, 0)[-len(args):]) == []


@pytest.mark.slow
def test_samples_on_another_axis_are_told_with_the_shape() -> None:
    found = sample_dependence(lambda x: (x * 2.0).T, X)
    assert found[0].measured["kind"] == "axis"
    assert "(5, 6) has its 6 samples on axis 1, not on axis 0" in found[0].statement


@pytest.mark.parametrize(("axes", "message"), [
    ((None, None), "no argument that has samples"), ((0, 0), "5 on axis 0 of argument 0"), ((None,), "1 entries for 2"),
    ((None, 2), r"no axis 2")])
def test_axes_that_do_not_fit_are_explained(axes: Any, message: str) -> None:
    with pytest.raises(BadUsage, match=message):
        sample_dependence(fine, W, X, in_axes=axes)
