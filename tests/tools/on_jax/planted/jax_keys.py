"""Functions that use a key more than once, and functions that do not, after the documented semantics of
`jax.experimental.key_reuse`: drawing and splitting use a key up, folding in and cloning do not.

`MISSED` names those that the checker of JAX does not see: raw keys, fold_in with equal data, equal seeds, copies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, random

KEY = random.key(0)
RAW = random.PRNGKey(0)


@dataclass(frozen=True)
class Keyed:
    """A function, its arguments, the lines that are to be named, and the rule."""

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    rule: str
    lines: frozenset[int]


MISSED = frozenset({
    "two_draws_from_a_raw_key", "raw_parent_after_split", "same_raw_child_twice", "raw_key_carried_on_unchanged",
    "folded_with_equal_data", "folded_with_the_same_step", "equal_seeds", "copies_under_vmap"})  # fmt: skip
REUSED: list[Keyed] = []
FINE: list[Keyed] = []
Fn = Callable[..., Any]


def reused(*args: Any, rule: str = "J201") -> Callable[[Fn], Fn]:
    def add(fn: Fn) -> Fn:
        lines, first = inspect.getsourcelines(fn)
        marked = frozenset(first + i for i, text in enumerate(lines) if "# <-" in text)
        assert marked, fn
        REUSED.append(Keyed(fn.__name__, fn, args, rule, marked))
        return fn

    return add


def fine(*args: Any) -> Callable[[Fn], Fn]:
    def add(fn: Fn) -> Fn:
        FINE.append(Keyed(fn.__name__, fn, args, "", frozenset()))
        return fn

    return add


# ---- reused


@reused(KEY)
def two_draws(key: Any) -> Any:
    a = random.normal(key, (3,))  # <-
    return a + random.uniform(key, (3,))  # <-


@reused(RAW)
def two_draws_from_a_raw_key(key: Any) -> Any:
    a = random.normal(key, (3,))  # <-
    return a + random.normal(key, (3,))  # <-


@reused(KEY)
def parent_after_split(key: Any) -> Any:
    sub = random.split(key, 2)[1]  # <-
    return random.normal(key, (3,)) + random.normal(sub, (3,))  # <-


@reused(RAW)
def raw_parent_after_split(key: Any) -> Any:
    key, _goal, _start = random.split(key, 3)
    a = random.randint(key, (4,), 0, 8)  # <-
    return a + random.randint(key, (4,), 0, 8)  # <-


@reused(KEY)
def split_after_draw(key: Any) -> Any:
    a = random.normal(key, (3,))  # <-
    return a + random.normal(random.split(key)[0], (3,))  # <-


@reused(KEY)
def split_twice(key: Any) -> Any:
    a, _ = random.split(key)  # <-
    b, _ = random.split(key)  # <-
    return random.normal(a, (3,)) + random.uniform(b, (3,))  # <-


@reused(KEY)
def same_child_twice(key: Any) -> Any:
    keys = random.split(key, 4)
    return random.normal(keys[1], (3,)) + random.normal(keys[1], (3,))  # <-


@reused(RAW)
def same_raw_child_twice(key: Any) -> Any:
    keys = random.split(key, 4)
    a = random.normal(keys[2], (3,))  # <-
    return a + random.bernoulli(keys[2], 0.5, (3,))  # <-


@reused(KEY)
def child_and_the_whole_array(key: Any) -> Any:
    keys = random.split(key, 4)
    a = random.normal(keys[0], (3,))  # <-
    return a + jax.vmap(lambda k: random.normal(k, (3,)))(keys)  # <-


@reused(KEY)
def slices_overlap(key: Any) -> Any:
    keys = random.split(key, 4)
    draw = jax.vmap(lambda k: random.normal(k))  # <-
    return draw(keys[:3]).sum() + draw(keys[2:]).sum()


@reused(KEY, jnp.int32(2))
def same_unknown_element(key: Any, i: Any) -> Any:
    keys = random.split(key, 4)
    return random.normal(keys[i]) + random.normal(keys[i])  # <-


@reused(KEY)
def folded_with_equal_data(key: Any) -> Any:
    a = random.normal(random.fold_in(key, 7), (3,))  # <-
    return a + random.normal(random.fold_in(key, 7), (3,))  # <-


@reused(KEY, jnp.int32(3))
def folded_with_the_same_step(key: Any, step: Any) -> Any:
    noise = random.normal(random.fold_in(key, step), (3,))  # <-
    mask = random.bernoulli(random.fold_in(key, step), 0.5, (3,))  # <-
    return noise * mask


@reused(jnp.ones(3))
def equal_seeds(x: Any) -> Any:
    weights = random.normal(random.PRNGKey(0), (3,))  # <-
    return x * weights * random.bernoulli(random.PRNGKey(0), 0.5, (3,))  # <-


@reused(KEY)
def through_calls(key: Any) -> Any:
    def layer(k: Any, x: Any) -> Any:
        return x * random.bernoulli(k, 0.5, x.shape)  # <-

    return layer(key, layer(key, jnp.ones(3)))


@reused(KEY)
def through_jit(key: Any) -> Any:
    @jax.jit
    def layer(k: Any, x: Any) -> Any:
        return x * random.bernoulli(k, 0.5, x.shape)  # <-

    return layer(key, layer(key, jnp.ones(3)))


@reused(KEY)
def in_cond_and_after(key: Any) -> Any:
    a = lax.cond(key.shape == (), lambda k: random.normal(k), lambda k: 0.0, key)  # <-
    return a + random.normal(key)  # <-


@reused(KEY, jnp.float32(1.0))
def in_one_branch_and_before(key: Any, x: Any) -> Any:
    a = random.normal(key)  # <-
    return a + lax.cond(x > 0, lambda k: random.normal(k), lambda k: x, key)  # <-


@reused(KEY, jnp.float32(1.0), rule="J202")
def in_scan_from_outside(key: Any, x: Any) -> Any:
    def body(c: Any, _: Any) -> tuple[Any, None]:
        return c + random.normal(key), None  # <-

    return lax.scan(body, x, None, length=5)[0]


@reused(KEY, rule="J202")
def carried_on_unchanged(key: Any) -> Any:
    def body(c: Any, _: Any) -> tuple[Any, Any]:
        k, x = c
        return (k, x + random.normal(k)), None  # <-

    return lax.scan(body, (key, 0.0), None, length=5)[0][1]


@reused(RAW, rule="J202")
def raw_key_carried_on_unchanged(key: Any) -> Any:
    def body(c: Any, _: Any) -> tuple[Any, Any]:
        k, x = c
        return (k, x + random.normal(k)), None  # <-

    return lax.scan(body, (key, 0.0), None, length=5)[0][1]


@reused(KEY, rule="J202")
def split_in_loop_parent_kept(key: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        sub = random.split(key)[0]  # <-
        return c + random.normal(sub)  # <-

    return lax.fori_loop(0, 5, body, 0.0)


@reused(KEY, rule="J202")
def in_while_from_outside(key: Any) -> Any:
    return lax.while_loop(lambda c: c < 3.0, lambda c: c + random.uniform(key), 0.0)  # <-


@reused(KEY, rule="J202")
def stack_of_one_key(key: Any) -> Any:
    keys = jnp.stack([key, key, key])
    return lax.scan(lambda c, k: (c + random.normal(k), None), 0.0, keys)[0]  # <-


@reused(KEY)
def carried_and_split_wrongly(key: Any) -> Any:
    def body(k: Any, _: Any) -> tuple[Any, Any]:
        noise = random.normal(k)  # <-
        k = random.split(k)[0]  # <-
        return k, noise

    return lax.scan(body, key, None, length=5)[1]


@reused(KEY)
def loop_and_after(key: Any) -> Any:
    keys = random.split(key, 5)
    a = lax.scan(lambda c, k: (c + random.normal(k), None), 0.0, keys)[0]  # <-
    return a + random.normal(keys[0])  # <-


@reused(KEY)
def start_of_the_loop_again(key: Any) -> Any:
    def body(k: Any, _: Any) -> tuple[Any, Any]:
        k, sub = random.split(k)  # <-
        return k, random.normal(sub)

    ys = lax.scan(body, key, None, length=5)[1]
    return ys.sum() + random.normal(key)  # <-


@reused(KEY)
def copies_under_vmap(key: Any) -> Any:
    keys = jnp.repeat(key[None], 4)
    return jax.vmap(lambda k: random.normal(k, (3,)))(keys)  # <-


@reused(KEY, jnp.ones(3))
def dropout_twice_in_a_loss(key: Any, w: Any) -> Any:
    def loss(p: Any) -> Any:
        h = p * random.bernoulli(key, 0.9, p.shape)  # <-
        return (h * random.bernoulli(key, 0.9, p.shape)).sum()  # <-

    return jax.value_and_grad(loss)(w)


@reused(KEY)
def permutation_and_choice(key: Any) -> Any:
    order = random.permutation(key, 8)  # <-
    return order + random.choice(key, 8, (8,))  # <-


@reused(KEY)
def gamma_and_normal(key: Any) -> Any:
    return random.gamma(key, 2.0) + random.normal(key)  # <-


@reused(KEY)
def reshaped_keys(key: Any) -> Any:
    grid = random.split(key, (2, 2))
    flat = grid.reshape(-1)
    return random.normal(grid[1, 0]) + random.normal(flat[2])  # <-


@reused(KEY)
def data_of_a_key(key: Any) -> Any:
    again = random.wrap_key_data(random.key_data(key))
    return random.normal(key) + random.normal(again)  # <-


# ---- fine


@fine(KEY)
def one_draw(key: Any) -> Any:
    return random.normal(key, (3,))


@fine(RAW)
def split_and_draw_raw(key: Any) -> Any:
    key, a, b = random.split(key, 3)
    return random.normal(a, (3,)) + random.normal(b, (3,)), key


@fine(KEY)
def chain_of_splits(key: Any) -> Any:
    total = 0.0
    for _ in range(4):
        key, sub = random.split(key)
        total = total + random.normal(sub)
    return total


@fine(KEY)
def folded_with_different_data(key: Any) -> Any:
    return random.normal(random.fold_in(key, 1)) + random.normal(random.fold_in(key, 2))


@fine(KEY, jnp.int32(1), jnp.int32(2))
def folded_with_unknown_data(key: Any, i: Any, j: Any) -> Any:
    return random.normal(random.fold_in(key, i)) + random.normal(random.fold_in(key, j))


@fine(KEY)
def folded_and_drawn(key: Any) -> Any:
    return random.normal(random.fold_in(key, 1)) + random.normal(key)


@fine(KEY)
def cloned(key: Any) -> Any:
    return random.normal(key) + random.normal(random.clone(key))


@fine(KEY, jnp.float32(1.0))
def one_in_each_branch(key: Any, x: Any) -> Any:
    return lax.cond(x > 0, lambda k: random.normal(k), lambda k: random.uniform(k), key)


@fine(KEY, jnp.int32(1))
def one_in_each_case(key: Any, i: Any) -> Any:
    return lax.switch(i, [random.normal, random.uniform, lambda k: 0.0 * random.normal(k)], key)


@fine(KEY)
def scan_over_children(key: Any) -> Any:
    return lax.scan(lambda c, k: (c + random.normal(k), None), 0.0, random.split(key, 5))[0]


@fine(RAW)
def scan_over_raw_children(key: Any) -> Any:
    return lax.scan(lambda c, k: (c + random.normal(k), None), 0.0, random.split(key, 5))[0]


@fine(KEY)
def carried_and_split(key: Any) -> Any:
    def body(c: Any, _: Any) -> tuple[Any, Any]:
        k, x = c
        k, sub = random.split(k)
        return (k, x + random.normal(sub)), None

    return lax.scan(body, (key, 0.0), None, length=5)[0][1]


@fine(RAW)
def raw_carried_and_split(key: Any) -> Any:
    def body(c: Any, _: Any) -> tuple[Any, Any]:
        k, x = c
        k, sub = random.split(k)
        return (k, x + random.normal(sub)), None

    return lax.scan(body, (key, 0.0), None, length=5)[0][1]


@fine(KEY)
def folded_with_the_iteration(key: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, c: c + random.normal(random.fold_in(key, i)), 0.0)


@fine(KEY)
def loop_of_one_iteration(key: Any) -> Any:
    return lax.scan(lambda c, _: (c + random.normal(key), None), 0.0, None, length=1)[0]


@fine(KEY)
def vmap_over_children(key: Any) -> Any:
    return jax.vmap(lambda k: random.normal(k, (3,)))(random.split(key, 4))


@fine(KEY)
def disjoint_slices(key: Any) -> Any:
    keys = random.split(key, 6)
    draw = jax.vmap(lambda k: random.normal(k))
    return draw(keys[:3]).sum() + draw(keys[3:]).sum()


@fine(KEY, jnp.int32(0), jnp.int32(1))
def different_unknown_elements(key: Any, i: Any, j: Any) -> Any:
    keys = random.split(key, 4)
    return random.normal(keys[i]) + random.normal(keys[j])


@fine(KEY, jnp.ones(3))
def remat_draws_again(key: Any, w: Any) -> Any:
    @jax.checkpoint
    def layer(p: Any) -> Any:
        return jnp.sin(p * random.bernoulli(key, 0.9, p.shape)) ** 2

    return jax.grad(lambda p: layer(p).sum())(w)


@fine(KEY, jnp.ones(3))
def dropout_in_a_loss(key: Any, w: Any) -> Any:
    def loss(p: Any) -> Any:
        a, b = random.split(key)
        h = jnp.sin(p) * random.bernoulli(a, 0.9, p.shape)
        return (h * random.bernoulli(b, 0.9, p.shape)).sum()

    return jax.value_and_grad(loss)(w)


@fine(KEY)
def jit_called_with_two_keys(key: Any) -> Any:
    @jax.jit
    def walk(k: Any) -> Any:
        def body(c: Any, _: Any) -> tuple[Any, Any]:
            c, sub = random.split(c)
            return c, random.normal(sub)

        return lax.scan(body, k, None, length=3)[1]

    a, b = random.split(key)
    return walk(a) + walk(b)


@fine(jnp.ones(3))
def different_seeds(x: Any) -> Any:
    return x * random.normal(random.PRNGKey(0), (3,)) * random.bernoulli(random.PRNGKey(1), 0.5, (3,))


@fine(KEY)
def several_kinds_from_children(key: Any) -> Any:
    a, b, c, d = random.split(key, 4)
    return (random.gamma(a, 2.0) + random.categorical(b, jnp.ones(3)) + random.choice(c, 5)
            + random.permutation(d, 5)[0])


@fine(KEY)
def rejection_loop(key: Any) -> Any:
    def body(c: Any) -> Any:
        k, _ = c
        k, sub = random.split(k)
        return k, random.uniform(sub)

    return lax.while_loop(lambda c: c[1] < 0.9, body, (key, 0.0))[1]


@fine(KEY)
def nested_loops(key: Any) -> Any:
    def outer(c: Any, k: Any) -> tuple[Any, None]:
        return lax.scan(lambda s, kk: (s + random.normal(kk), None), c, random.split(k, 3))[0], None

    return lax.scan(outer, 0.0, random.split(key, 4))[0]
