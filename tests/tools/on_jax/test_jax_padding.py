"""Rows that are filled up with another id than a compiled step masks, and steps that mask the right one or are told."""

from __future__ import annotations

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
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.paths.compared import compared_with
from traindx_tools.on_jax.rules import j806_padding_ids_differ

VOCABULARY, WIDTH, LENGTH = 40, 8, 14
END = 2


def rows(random: Any, fill: int, end: bool = False) -> Any:
    ids = np.full((16, LENGTH), fill, np.int32)
    for row in ids:
        n = int(random.integers(4, LENGTH - 1))
        row[:n] = random.integers(3, VOCABULARY, n)
        if end:
            row[n - 1] = END
    return ids


Mask = Callable[[Any, Any], Any]


def by_constant(pad: int) -> Mask:
    return lambda ids, _: (ids != pad).astype(jnp.float32)


def by_where(pad: int) -> Mask:
    return lambda ids, _: jnp.where(jnp.equal(ids, pad), 0.0, 1.0)


def vmapped(pad: int) -> Mask:
    return lambda ids, _: jax.vmap(lambda row: jax.lax.select(row == pad, jnp.zeros(row.shape), jnp.ones(row.shape)))(
        ids)


def with_an_end(pad: int | None) -> Mask:
    return lambda ids, _: 1.0 * (ids == END) + (1.0 if pad is None else (ids != pad))


def given(ids: Any, more: Any) -> Any:
    return more * (ids != 0)


def trained(mask: Mask, fill: int, *, more: Callable[[Any], Any] | None = None, end: bool = False,
            steps: int = 15) -> None:
    random = np.random.default_rng(0)
    params = {"table": jnp.asarray(random.normal(size=(VOCABULARY, WIDTH)), jnp.float32),
              "out": jnp.asarray(random.normal(size=(WIDTH, VOCABULARY)), jnp.float32)}

    @jax.jit
    def step(params: Any, ids: Any, extra: Any) -> Any:
        def loss(p: Any) -> Any:
            scores = p["table"][ids[:, :-1]] @ p["out"]
            each = optax.softmax_cross_entropy_with_integer_labels(scores, ids[:, 1:])
            weights = mask(ids, extra)[:, 1:]
            return (each * weights).sum() / jnp.maximum(weights.sum(), 1)

        value, gradient = jax.value_and_grad(loss)(params)
        return jax.tree_util.tree_map(lambda a, b: a - 0.1 * b, params, gradient), value

    for _ in range(steps):
        ids = rows(random, fill, end)
        params, _ = step(params, ids, np.float32(1) if more is None else more(ids))


def seen(program: Callable[[], Any], folder: Path) -> list[Finding]:
    return [f for f in watched(program, Settings(str(folder), ("padding",))) if f.rule == "J806"]


@pytest.mark.parametrize("mask", [by_constant(0), by_where(0), vmapped(0), by_constant(7)])
def test_another_id_is_masked(mask: Mask, tmp_path: Path) -> None:
    (found,) = seen(lambda: trained(mask, 1), tmp_path)
    assert (found.measured["filler"], found.bearing.value) == (1, "cause")


@pytest.mark.parametrize(("mask", "fill", "options"), [
    (by_constant(0), 0, {}), (vmapped(1), 1, {}), (with_an_end(0), 0, {"end": True}),
    (with_an_end(None), 1, {"end": True}), (given, 1, {"more": lambda ids: (ids != 1).astype(np.float32)}),
    (lambda ids, n: (jnp.arange(LENGTH) < n[:, None]) * (ids != 0), 1,
     {"more": lambda ids: (ids != 1).sum(1).astype(np.int32)}),
    (lambda ids, _: (ids >= 0) * jnp.ones(ids.shape), -1, {}),
], ids=["its own", "its own in vmap", "and an end", "an end alone", "a mask is given", "lengths are given", "negative"])
def test_the_right_id_or_a_mask(mask: Mask, fill: int, options: Any, tmp_path: Path) -> None:
    assert seen(lambda: trained(mask, fill, **options), tmp_path) == []


def test_broken_inputs(tmp_path: Path) -> None:
    assert seen(lambda: trained(by_constant(0), 1, steps=1), tmp_path) == []
    assert compared_with(jax.make_jaxpr(lambda x: x)(jnp.ones(3))) == {}
    assert list(j806_padding_ids_differ.check([])) == []
