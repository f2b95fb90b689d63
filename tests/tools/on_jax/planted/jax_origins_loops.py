"""Origins inside of loops, branches, vmap and shard_map."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_planting import ONE_ZERO, X, planted


@planted("scan", "log", "log-of-negative", "scan iteration 4")
def scan_forward() -> tuple[Any, ...]:
    def run(start: Any, xs: Any) -> Any:
        def body(c: Any, x: Any) -> tuple[Any, Any]:
            c = jnp.log(c) + x  # <- origin
            return c, c

        return lax.scan(body, start, xs)

    return jax.jit(run), jnp.float32(3.0), jnp.array([1.0, 1.0, 1.0, -2.0, 1.0, 1.0])


@planted("scan", "div", "division-by-zero", "scan iteration 2")
def scan_of_inputs_only() -> tuple[Any, ...]:
    def run(xs: Any) -> Any:
        def body(c: Any, x: Any) -> tuple[Any, Any]:
            return c + 1.0, 1.0 / x  # <- origin

        return lax.scan(body, 0.0, xs)[1]

    return jax.jit(run), ONE_ZERO


@planted("scan", "mul", "overflow", "scan iteration 5")
def recurrent_growth() -> tuple[Any, ...]:
    def loss(w: Any, x: Any) -> Any:
        def cell(h: Any, _: Any) -> tuple[Any, None]:
            h = h * w  # <- origin
            return h, None

        return lax.scan(cell, x, None, length=9)[0].sum()

    return jax.jit(jax.value_and_grad(loss)), jnp.float32(1e7), jnp.ones(3)


@planted("scan", "div", "where-unsafe-branch", "scan iteration 3")
def scan_backward_where() -> tuple[Any, ...]:
    def loss(w: Any, xs: Any) -> Any:
        def body(c: Any, x: Any) -> tuple[Any, Any]:
            y = jnp.where(x > 0, w / x, 0.0)  # <- origin
            return c + y, None

        return lax.scan(body, 0.0, xs)[0]

    return jax.jit(jax.value_and_grad(loss)), jnp.float32(1.0), jnp.array([1.0, 2.0, 3.0, 0.0, 1.0])


@planted("scan", "div", "sqrt-at-zero", "scan iteration 1")
def scan_backward_sqrt() -> tuple[Any, ...]:
    def loss(xs: Any) -> Any:
        def body(c: Any, x: Any) -> tuple[Any, Any]:
            return c + jnp.sqrt(x), None  # <- origin

        return lax.scan(body, 0.0, xs)[0]

    return jax.jit(jax.grad(loss)), jnp.array([1.0, 0.0, 2.0])


@planted("scan", "exp", "exp-overflow", "scan iteration 2", "scan iteration 1")
def scan_in_scan() -> tuple[Any, ...]:
    def run(rows: Any) -> Any:
        def inner(c: Any, x: Any) -> tuple[Any, Any]:
            return c + jnp.exp(x), None  # <- origin

        def outer(c: Any, row: Any) -> tuple[Any, Any]:
            return lax.scan(inner, c, row)[0], None

        return lax.scan(outer, 0.0, rows)[0]

    return jax.jit(run), jnp.array([[1.0, 1.0], [2.0, 2.0], [3.0, 300.0], [1.0, 1.0]])


@planted("scan", "log", "log-of-zero", "scan iteration 1")
def layers_by_scan_under_remat() -> tuple[Any, ...]:
    def loss(ws: Any, x: Any) -> Any:
        @jax.checkpoint
        def layer(h: Any, w: Any) -> tuple[Any, None]:
            h = jnp.maximum(h @ w, 0.0)
            return jnp.log(h), None  # <- origin

        return lax.scan(layer, x, ws)[0].mean()

    ws = jnp.stack([jnp.eye(4), -jnp.eye(4), jnp.eye(4)])
    return jax.jit(jax.value_and_grad(loss)), ws, jnp.abs(X) + 2.0


@planted("while", "sub", "overflow", "while iteration 125")
def while_doubling() -> tuple[Any, ...]:
    def run(x: Any) -> Any:
        def body(s: Any) -> Any:
            i, v = s
            v = v - (-v - 1.0)  # <- origin
            return i + 1, v

        return lax.while_loop(lambda s: s[0] < 140, body, (0, x))[1]

    return jax.jit(run), jnp.float32(3.0)


@planted("while", "div", "division-by-zero", "scan iteration 3")
def fori_loop_division() -> tuple[Any, ...]:
    def run(x: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            return v + 1.0 / (i - 3.0)  # <- origin

        return lax.fori_loop(0, 6, body, x)

    return jax.jit(jax.value_and_grad(run)), jnp.float32(1.0)


@planted("cond", "log", "log-of-zero", "cond branch 1")
def cond_branch() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        def taken(v: Any) -> Any:
            return jnp.log(v - v)  # <- origin

        def other(v: Any) -> Any:
            return jnp.log(v)

        return lax.cond(x.sum() > 0, taken, other, x).sum()

    return jax.jit(loss), jnp.ones(3)


@planted("cond", "div", "division-by-zero", "cond branch 2")
def switch_branch() -> tuple[Any, ...]:
    def loss(which: Any, x: Any) -> Any:
        branches = [lambda v: v, lambda v: v * 2.0,
                    lambda v: v / (v - v)]  # <- origin
        return lax.switch(which, branches, x).sum() + x.sum()

    return jax.jit(lambda w, x: loss(w, x)), jnp.int32(2), jnp.ones(3) * jnp.float32(2.0)


@planted("cond", "div", "sqrt-at-zero", "cond branch 0")
def cond_backward() -> tuple[Any, ...]:
    def loss(x: Any, flag: Any) -> Any:
        return lax.cond(flag, lambda v: v * 2.0, lambda v: jnp.sqrt(v), x).sum()  # <- origin

    return jax.jit(jax.grad(loss)), ONE_ZERO, False


@planted("cond", "exp", "exp-overflow", "scan iteration 2", "cond branch 1")
def cond_in_scan() -> tuple[Any, ...]:
    def run(xs: Any) -> Any:
        def body(c: Any, x: Any) -> tuple[Any, Any]:
            c = lax.cond(x > 2.0, lambda v: v + jnp.exp(x * 40.0), lambda v: v, c)  # <- origin
            return c, c

        return lax.scan(body, 0.0, xs)[0]

    return jax.jit(run), jnp.array([1.0, 2.0, 3.0, 1.0])


@planted("vmap", "log", "log-of-zero")
def vmap_forward() -> tuple[Any, ...]:
    def one(p: Any, x: Any) -> Any:
        score = jnp.maximum((p * x).sum(), 0.0)
        return jnp.log(score)  # <- origin

    return jax.jit(jax.vmap(one, (None, 0))), jnp.ones(4), jnp.array([[1.0, 1, 1, 1], [2, 2, 2, 2], [0, 0, 0, 0]])


@planted("vmap", "div", "sqrt-at-zero")
def per_example_gradient() -> tuple[Any, ...]:
    def loss(p: Any, x: Any) -> Any:
        return jnp.sqrt(((p - x) ** 2).sum())  # <- origin

    return jax.jit(jax.vmap(jax.grad(loss), (None, 0))), jnp.ones(3), jnp.array([[2.0, 1, 0], [1, 1, 1], [0, 0, 0]])


@planted("vmap", "div", "division-by-zero", "scan iteration 1")
def vmap_of_scan() -> tuple[Any, ...]:
    def run(xs: Any) -> Any:
        def body(c: Any, x: Any) -> tuple[Any, Any]:
            return c + 1.0 / x, None  # <- origin

        return lax.scan(body, 0.0, xs)[0]

    return jax.jit(jax.vmap(run)), jnp.array([[1.0, 2.0, 3.0], [1.0, 0.0, 3.0]])


@planted("vmap", "exp", "where-unsafe-branch")
def vmap_of_grad_where() -> tuple[Any, ...]:
    def loss(w: Any, x: Any) -> Any:
        return jnp.where(x < 10.0, jnp.exp(w * x), 0.0)  # <- origin

    return jax.jit(lambda w, x: jax.vmap(jax.value_and_grad(loss), (None, 0))(w, x)), jnp.float32(1.0), jnp.array(
        [1.0, 2.0, 500.0])


def sharded(local: Any, specs: tuple[Any, ...]) -> Any:
    """`local` on each device of a mesh over all devices, its mean over them."""
    try:
        from jax import shard_map
    except ImportError:  # before 0.6
        from jax.experimental.shard_map import shard_map
    from jax.sharding import Mesh, PartitionSpec

    return shard_map(local, mesh=Mesh(np.array(jax.devices()), ("data",)), in_specs=specs, out_specs=PartitionSpec())


@planted("shard_map", "log", "log-of-zero")
def shard_map_forward() -> tuple[Any, ...]:
    from jax.sharding import PartitionSpec

    def local(w: Any, x: Any) -> Any:
        score = jnp.maximum((x * w).sum(axis=1), 0.0)
        return lax.pmean(jnp.log(score).mean(), "data")  # <- origin

    x = jnp.ones((4, 3)).at[3].set(0.0)
    return jax.jit(jax.value_and_grad(sharded(local, (PartitionSpec(), PartitionSpec("data"))))), jnp.ones(3), x


@planted("shard_map", "div", "sqrt-at-zero")
def shard_map_backward() -> tuple[Any, ...]:
    from jax.sharding import PartitionSpec

    def local(w: Any, x: Any) -> Any:
        distance = jnp.sqrt(((x - w) ** 2).sum(axis=1))  # <- origin
        return lax.pmean(distance.mean(), "data")

    x = jnp.arange(12.0).reshape(4, 3).at[2].set(1.0)
    return jax.jit(jax.grad(sharded(local, (PartitionSpec(), PartitionSpec("data"))))), jnp.ones(3), x
