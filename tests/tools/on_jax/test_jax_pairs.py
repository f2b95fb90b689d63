"""Evaluated pairs that a JAX step was trained on in the other order."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))

from watching import watched  # noqa: E402

from traindx_tools.live.settings import Settings  # noqa: E402

NODES, EDGES, WIDTH = 150, 500, 6


def unordered(random):
    u, v = np.triu_indices(NODES, 1)
    chosen = random.permutation(len(u))[:EDGES]
    return np.stack([u[chosen], v[chosen]], 1).astype(np.int32)


def both(edges):
    return np.concatenate([edges, edges[:, ::-1]])


def split(rows, random):
    rows = rows[random.permutation(len(rows))]
    return rows[len(rows) // 4:], rows[:len(rows) // 4]


def parts(by_row, returned=1.0):
    random = np.random.default_rng(0)
    edges = unordered(random)
    if by_row:
        return split(np.concatenate([edges, edges[random.random(len(edges)) < returned][:, ::-1]]), random)
    train, held = split(edges, random)
    return both(train), both(held)


def links(train, held, transposed=False):
    """Ids of both ends, as columns or as an edge index of two rows."""
    turned = (lambda e: np.ascontiguousarray(e.T)) if transposed else (lambda e: e)

    def score(params, pairs):
        u, v = (pairs[0], pairs[1]) if transposed else (pairs[:, 0], pairs[:, 1])
        return (params["table"][u] * params["table"][v]).sum(-1)

    def loss(params, positive, negative):
        return (jax.nn.softplus(-score(params, positive)) + jax.nn.softplus(score(params, negative))).mean()

    def one_step(params, positive, negative):
        value, gradient = jax.value_and_grad(loss)(params, positive, negative)
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradient), value

    def run():
        random = np.random.default_rng(1)
        params = {"table": jnp.asarray(random.normal(size=(NODES, WIDTH))), "bias": jnp.zeros(WIDTH)}
        step, predict = jax.jit(one_step), jax.jit(score)
        against = random.integers(0, NODES, held.shape).astype(np.int32)
        for _ in range(5):
            for k in range(0, len(train), 125):
                part = train[k:k + 125]
                params, _ = step(params, turned(part), turned(random.integers(0, NODES, part.shape).astype(np.int32)))
            predict(params, turned(held))
            predict(params, turned(against))

    return run


def siamese(train, held):
    """Values of both sides in one batch."""
    x = np.random.default_rng(2).normal(size=(NODES, 5)).astype(np.float32)

    def distance(params, a, b):
        return ((a @ params["w"] - b @ params["w"]) ** 2).sum(-1) + params["b"].sum()

    def one_step(params, batch):
        def loss(params):
            return ((distance(params, batch["a"], batch["b"]) - batch["y"]) ** 2).mean()
        value, gradient = jax.value_and_grad(loss)(params)
        return jax.tree_util.tree_map(lambda p, g: p - 0.001 * g, params, gradient), value

    def run():
        params = {"w": jnp.ones((5, 3)), "b": jnp.zeros(3)}
        step, predict = jax.jit(one_step), jax.jit(distance)
        for _ in range(4):
            for k in range(0, len(train), 125):
                e = train[k:k + 125]
                params, _ = step(params, {"a": x[e[:, 0]], "b": x[e[:, 1]], "y": np.ones(len(e), np.float32)})
            predict(params, x[held[:, 0]], x[held[:, 1]])

    return run


PROGRAMS = {"columns": links, "edge-index": lambda t, h: links(t, h, transposed=True), "siamese": siamese}


def found(tmp_path, run):
    return list(watched(run, Settings(str(tmp_path / "run"), ("pairs",))))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_split_by_row_of_both_orders(program, tmp_path):
    (one,) = found(tmp_path, program(*parts(by_row=True)))
    assert one.rule == "J804"
    assert one.where.file.endswith("test_jax_pairs.py")
    assert 0.6 < one.measured["share"] < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_healthy_twins(program, tmp_path):
    assert found(tmp_path / "pairs", program(*parts(by_row=False))) == []
    assert found(tmp_path / "directed", program(*parts(by_row=True, returned=0.5))) == []
    train, _ = parts(by_row=True)
    assert found(tmp_path / "training", program(train, train[:200])) == []


def test_arguments_that_are_no_pairs(tmp_path):
    def run():
        step = jax.jit(lambda w, x, i: (w - jax.grad(lambda w: (x @ w).sum())(w), i.sum()))
        w = jnp.ones((4, 2))
        for _ in range(6):
            w, _ = step(w, np.full((8, 4), np.nan, np.float32), np.zeros((8, 2), np.int32))
        jax.jit(lambda w, i: w.sum() + i.sum())(w, np.zeros((0, 2), np.int32))

    assert found(tmp_path, run) == []
