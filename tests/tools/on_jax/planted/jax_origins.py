"""Small JAX functions, each with one planted origin of a non-finite value: the line is marked `# <- origin`.

They are used by the test beside this folder and by `benchmarks/jax_origins.py`. Each gives a function and its
arguments; `op` is the primitive that is to be named, `path` what its path must hold.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

MARK = "# <- origin"
Case = Callable[[], tuple[Any, ...]]


@dataclass(frozen=True)
class Planted:
    """A function with its arguments, the primitive, the reason and the line that are to be named."""

    name: str
    make: Case
    op: str
    reason: str
    line: int
    family: str
    path: tuple[str, ...]


PLANTED: list[Planted] = []


def planted(family: str, op: str, reason: str, *path: str) -> Callable[[Case], Case]:
    def add(make: Case) -> Case:
        lines, first = inspect.getsourcelines(make)
        here = [first + i for i, text in enumerate(lines) if MARK in text]
        assert len(here) == 1, make
        PLANTED.append(Planted(make.__name__, make, op, reason, here[0], family, path))
        return make

    return add


def weights(inputs: int = 4, hidden: int = 6) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"a": jnp.asarray(rng.normal(size=(inputs, hidden)), jnp.float32),
            "b": jnp.asarray(rng.normal(size=(hidden, 1)), jnp.float32)}


def net(p: dict[str, Any], x: Any) -> Any:
    return jnp.tanh(x @ p["a"]) @ p["b"]


X = jnp.asarray(np.random.default_rng(1).normal(size=(5, 4)), jnp.float32)
ONE_ZERO = jnp.array([1.0, 2.0, 0.0, 3.0, 4.0])


# ---- forward


@planted("forward", "log", "log-of-zero")
def log_of_zero() -> tuple[Any, ...]:
    def loss(p: Any, x: Any) -> Any:
        probability = jax.nn.sigmoid(net(p, x)[:, 0]) * ONE_ZERO
        return -jnp.log(probability).mean()  # <- origin

    return jax.jit(jax.value_and_grad(loss)), weights(), X


@planted("forward", "div", "division-by-zero")
def division_by_zero() -> tuple[Any, ...]:
    def loss(p: Any, x: Any) -> Any:
        out = net(p, x)[:, 0]
        scaled = out / ONE_ZERO  # <- origin
        return (scaled ** 2).mean()

    return jax.value_and_grad(loss), weights(), X


@planted("forward", "div", "zero-by-zero")
def zero_by_zero() -> tuple[Any, ...]:
    def loss(p: Any, x: Any, mask: Any) -> Any:
        error = (net(p, x)[:, 0] - 1.0) ** 2 * mask
        return error.sum() / mask.sum()  # <- origin

    return jax.jit(jax.value_and_grad(loss)), weights(), X, jnp.zeros(5)


@planted("forward", "exp", "exp-overflow")
def exp_overflow() -> tuple[Any, ...]:
    def loss(p: Any, x: Any) -> Any:
        rate = jnp.exp(90.0 + net(p, x) ** 2)  # <- origin
        return (rate - 1.0).mean()

    return jax.jit(loss), weights(), X


@planted("forward", "sqrt", "sqrt-of-negative")
def sqrt_of_negative() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        variance = (x ** 2).mean() - 2.0 * x.mean() ** 2 - 9.0
        return jnp.sqrt(variance)  # <- origin

    return jax.jit(loss), X


@planted("forward", "log", "log-of-negative")
def log_of_negative() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        margin = x.sum(axis=1) - 50.0
        return jnp.log(margin).sum()  # <- origin

    return jax.jit(loss), X


@planted("forward", "pow", "power-of-negative")
def power_of_negative() -> tuple[Any, ...]:
    def loss(x: Any, gamma: Any) -> Any:
        return (x ** gamma).sum()  # <- origin

    return jax.jit(loss), -jnp.abs(X), jnp.float32(0.7)


@planted("forward", "mul", "overflow")
def float32_overflow() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        big = (x + 5.0) * 1e30
        return (big * big).mean()  # <- origin

    return jax.jit(loss), X


@planted("forward", "rsqrt", "division-by-zero")
def normalise_constant() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        centred = x - x.mean(axis=0)
        return (centred * lax.rsqrt((centred ** 2).mean(axis=0))).sum()  # <- origin

    return jax.jit(loss), jnp.ones((5, 4))


@planted("forward", "atanh", "outside-domain")
def atanh_at_one() -> tuple[Any, ...]:
    def loss(action: Any) -> Any:
        raw = jnp.arctanh(jnp.clip(action, -1.0, 1.0))  # <- origin
        return (raw ** 2).sum()

    return jax.jit(loss), X * 10


@planted("forward", "log1p", "log-of-zero")
def log1p_of_minus_one() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        squashed = jnp.tanh(x * 100.0)
        return jnp.log1p(-squashed ** 2).sum()  # <- origin

    return jax.jit(loss), X


# ---- half precision


@planted("half", "exp", "exp-overflow")
def exp_in_half() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        return jnp.exp(x.astype(jnp.float16) * 20.0).sum()  # <- origin

    return jax.jit(loss), X


@planted("half", "convert_element_type", "half-overflow")
def cast_to_half() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        scores = x * 1e5
        small = scores.astype(jnp.float16)  # <- origin
        return small.astype(jnp.float32).sum()

    return jax.jit(loss), X


@planted("half", "dot_general", "half-overflow")
def attention_in_half() -> tuple[Any, ...]:
    def loss(q: Any, k: Any) -> Any:
        scores = q @ k.T  # <- origin
        return jax.nn.softmax(scores, axis=-1).sum()

    big = (jnp.abs(X) * 300).astype(jnp.float16)
    return jax.jit(loss), big, big


@planted("half", "div", "zero-by-zero")
def epsilon_lost_in_half() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        norm = jnp.sqrt((x * x).sum(axis=1, keepdims=True))
        return (x / (norm + jnp.float16(1e-9))).sum()  # <- origin

    return jax.jit(loss), jnp.zeros((3, 4), jnp.float16)


# ---- gradient


@planted("gradient", "div", "sqrt-at-zero")
def gradient_of_sqrt_at_zero() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        return jnp.sqrt(x ** 2).sum()  # <- origin

    return jax.jit(jax.value_and_grad(loss)), ONE_ZERO


@planted("gradient", "div", "sqrt-at-zero")
def gradient_of_norm_at_zero() -> tuple[Any, ...]:
    def loss(a: Any, b: Any) -> Any:
        return jnp.linalg.norm(a - b, axis=-1).mean()  # <- origin

    return jax.jit(jax.grad(loss)), X, X


@planted("gradient", "pow", "sqrt-at-zero")
def gradient_of_power_at_zero() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        return (x ** 0.3).sum()  # <- origin

    return jax.jit(jax.grad(loss)), ONE_ZERO


@planted("gradient", "exp", "where-unsafe-branch")
def where_exp() -> tuple[Any, ...]:
    def loss(p: Any, x: Any) -> Any:
        z = x * p
        return jnp.where(z < 50.0, jnp.exp(z), z).sum()  # <- origin

    return jax.jit(jax.value_and_grad(loss)), jnp.float32(30.0), jnp.array([0.1, 0.2, 5.0])


@planted("gradient", "div", "where-unsafe-branch")
def where_log() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        safe = jnp.where(x > 0, jnp.log(x), 0.0)  # <- origin
        return (safe * x).sum()

    return jax.jit(jax.value_and_grad(loss)), ONE_ZERO


@planted("gradient", "integer_pow", "where-unsafe-branch")
def where_division() -> tuple[Any, ...]:
    def loss(w: Any, count: Any) -> Any:
        mean = jnp.where(count > 0, w / count, 0.0)  # <- origin
        return (mean ** 2).sum()

    return jax.jit(jax.value_and_grad(loss, argnums=(0, 1))), ONE_ZERO, ONE_ZERO


@planted("gradient", "div", "sqrt-at-zero")
def where_sqrt() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        return jnp.where(x > 0, jnp.sqrt(x), 0.0).sum()  # <- origin

    return jax.jit(jax.value_and_grad(loss)), ONE_ZERO


@planted("gradient", "div", "sqrt-at-zero")
def gradient_of_std_of_constant() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        return jnp.std(x, axis=0).sum()  # <- origin

    return jax.jit(jax.grad(loss)), jnp.ones((4, 3))


@planted("gradient", "log", "log-of-zero")
def gradient_of_xlogx() -> tuple[Any, ...]:
    def entropy(p: Any) -> Any:
        return -(p * jnp.log(p)).sum()  # <- origin

    return jax.jit(jax.grad(entropy)), jnp.array([0.5, 0.5, 0.0])


@planted("gradient of gradient", "div", "sqrt-at-zero")
def second_derivative_of_sqrt() -> tuple[Any, ...]:
    def energy(x: Any) -> Any:
        return jnp.sqrt((x ** 2).sum()) ** 3  # <- origin

    def penalty(x: Any) -> Any:
        return (jax.grad(energy)(x) ** 2).sum()

    return jax.jit(jax.grad(penalty)), jnp.zeros(3)


@planted("gradient of gradient", "div", "sqrt-at-zero")
def gradient_penalty() -> tuple[Any, ...]:
    def critic(x: Any, w: Any) -> Any:
        return (w * x).sum()

    def loss(w: Any, x: Any) -> Any:
        slope = jax.grad(critic)(x, w)
        return (jnp.sqrt((slope ** 2).sum()) - 1.0) ** 2  # <- origin

    return jax.jit(jax.value_and_grad(loss)), jnp.zeros(4), jnp.ones(4)


@planted("gradient of gradient", "log", "log-of-zero")
def hessian_of_log() -> tuple[Any, ...]:
    def f(x: Any) -> Any:
        return jnp.sum(x ** 3 * jnp.log(x))  # <- origin

    return jax.jit(jax.hessian(f)), jnp.array([1.0, 0.0])


@planted("gradient of gradient", "integer_pow", "division-by-zero")
def hessian_vector_product() -> tuple[Any, ...]:
    def f(x: Any) -> Any:
        return jnp.sum(1.0 / x)  # <- origin

    def hvp(x: Any, v: Any) -> Any:
        return jax.jvp(jax.grad(f), (x,), (v,))[1]

    return jax.jit(hvp), ONE_ZERO, jnp.ones(5)


# ---- loops and branches


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


# ---- vmap


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


# ---- custom rules, remat, nested calls



@planted("custom", "div", "division-by-zero")
def custom_vjp_backward() -> tuple[Any, ...]:
    @jax.custom_vjp
    def clipped(x: Any) -> Any:
        return x * 2.0

    def forward(x: Any) -> Any:
        return clipped(x), x

    def backward(x: Any, g: Any) -> Any:
        scale = jnp.abs(x).sum() - 5.0
        return (g / scale,)  # <- origin

    clipped.defvjp(forward, backward)

    def loss(x: Any) -> Any:
        y = x + 0.0
        return (clipped(y) ** 2).sum()

    return jax.jit(jax.value_and_grad(loss)), jnp.array([2.0, 3.0])


@planted("custom", "log", "log-of-zero")
def custom_vjp_forward() -> tuple[Any, ...]:
    @jax.custom_vjp
    def f(x: Any) -> Any:
        return jnp.log(x)

    def forward(x: Any) -> Any:
        return jnp.log(x), x  # <- origin

    f.defvjp(forward, lambda x, g: (g / (x + 1.0),))
    return jax.jit(jax.value_and_grad(lambda x: f(x).sum())), ONE_ZERO


@planted("custom", "exp", "exp-overflow")
def custom_vjp_not_differentiated() -> tuple[Any, ...]:
    @jax.custom_vjp
    def f(x: Any) -> Any:
        return jnp.exp(x * 100.0)  # <- origin

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * x,))
    return jax.jit(lambda x: f(x).sum()), ONE_ZERO


@planted("custom", "div", "division-by-zero")
def custom_jvp_rule() -> tuple[Any, ...]:
    @jax.custom_jvp
    def f(x: Any) -> Any:
        return x * x

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        slope = 1.0 / x  # <- origin
        return f(x), t * slope

    return jax.jit(jax.grad(lambda x: f(x).sum())), ONE_ZERO


@planted("custom", "log", "log-of-zero")
def remat_block() -> tuple[Any, ...]:
    @jax.checkpoint
    def block(x: Any) -> Any:
        return jnp.log(jnp.maximum(x, 0.0)) * 2.0  # <- origin

    return jax.jit(jax.value_and_grad(lambda x: block(jnp.sin(x)).sum())), ONE_ZERO


@planted("custom", "div", "sqrt-at-zero", "remat")
def remat_backward() -> tuple[Any, ...]:
    @jax.checkpoint
    def block(x: Any) -> Any:
        return jnp.sqrt(jnp.abs(jnp.sin(x)))  # <- origin

    return jax.jit(jax.grad(lambda x: (block(x) * 2.0).sum())), ONE_ZERO


@planted("custom", "div", "zero-by-zero", "jit(normalised)")
def nested_jit() -> tuple[Any, ...]:
    @jax.jit
    def normalised(x: Any) -> Any:
        total = x.sum()
        return x / total  # <- origin

    return jax.jit(lambda x: normalised(x * 0.0).sum()), X


# ---- masks


@planted("mask", "sub", "masked-softmax-row")
def row_masked_completely() -> tuple[Any, ...]:
    def attend(x: Any, keep: Any) -> Any:
        scores = jnp.where(keep, x @ x.T, -jnp.inf)
        top = scores.max(axis=-1, keepdims=True)
        weight = jnp.exp(scores - top)  # <- origin
        return (weight / weight.sum(axis=-1, keepdims=True)).sum()

    return jax.jit(attend), X, jnp.arange(5)[:, None] > jnp.arange(5)[None, :]


@planted("mask", "sub", "masked-softmax-row")
def softmax_of_masked_row() -> tuple[Any, ...]:
    def attend(x: Any, keep: Any) -> Any:
        scores = jnp.where(keep, x @ x.T, -jnp.inf)
        return jax.nn.softmax(scores, axis=-1).sum()  # <- origin

    return jax.jit(attend), X, jnp.arange(5)[:, None] > jnp.arange(5)[None, :]


@planted("mask", "mul", "infinity-times-zero")
def mask_times_infinity() -> tuple[Any, ...]:
    def scores(x: Any, keep: Any) -> Any:
        masked = (1.0 - keep) * -jnp.inf  # <- origin
        return jax.nn.softmax(x.sum(axis=1) + masked)

    return jax.jit(scores), X, jnp.array([1.0, 0.0, 1.0, 1.0, 0.0])


@planted("mask", "mul", "infinity-times-zero")
def entropy_of_masked_policy() -> tuple[Any, ...]:
    def entropy(logits: Any, legal: Any) -> Any:
        logits = jnp.where(legal, logits, -jnp.inf)
        log_p = jax.nn.log_softmax(logits)
        return -(jnp.exp(log_p) * log_p).sum()  # <- origin

    return jax.jit(entropy), jnp.arange(4.0), jnp.array([True, False, True, True])


# ---- integers, matrices, data, optimizers


@planted("integer", "mul", "integer-overflow")
def pairs_overflow() -> tuple[Any, ...]:
    def loss(n: Any, x: Any) -> Any:
        pairs = n * (n - 1)  # <- origin
        return x.sum() / jnp.sqrt(pairs.astype(jnp.float32))

    return jax.jit(loss), jnp.int32(60000), X


@planted("integer", "cumsum", "integer-overflow")
def cumulative_tokens() -> tuple[Any, ...]:
    def schedule(counts: Any) -> Any:
        seen = jnp.cumsum(counts)  # <- origin
        return 1.0 / jnp.sqrt(seen)

    return jax.jit(schedule), jnp.full((5,), 900_000_000, jnp.int32)


@planted("matrix", "cholesky", "singular-matrix")
def cholesky_of_indefinite() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        cov = x.T @ x - 100.0 * jnp.eye(4)
        return jnp.linalg.cholesky(cov).sum()  # <- origin

    return jax.jit(loss), X


@planted("optimizer", "div", "optimizer-division")
def adam_without_epsilon() -> tuple[Any, ...]:
    tx = optax.adam(1e-3, eps=0.0)

    def step(p: Any, s: Any, x: Any) -> Any:
        grads = jax.grad(lambda p: (p["used"] * x).sum())(p)
        updates, s = tx.update(grads, s, p)  # <- origin
        return optax.apply_updates(p, updates), s

    p = {"used": jnp.ones(4), "unused": jnp.ones(3)}
    return jax.jit(step), p, tx.init(p), jnp.ones(4)


@planted("optimizer", "div", "optimizer-division")
def adam_in_half() -> tuple[Any, ...]:
    tx = optax.adam(1e-3)

    def step(p: Any, s: Any, ids: Any) -> Any:
        grads = jax.grad(lambda p: p[ids].astype(jnp.float32).sum())(p)
        updates, s = tx.update(grads, s, p)  # <- origin
        return optax.apply_updates(p, updates), s

    p = jnp.ones((6, 2), jnp.float16)
    return jax.jit(step), p, tx.init(p), jnp.array([0, 1, 2])


@planted("optimizer", "integer_pow", "overflow")
def diverged_step() -> tuple[Any, ...]:
    tx = optax.sgd(1.0)

    def loss(p: Any, x: Any) -> Any:
        return ((x @ p) ** 2).mean()  # <- origin

    def step(p: Any, s: Any, x: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, x)
        updates, s = tx.update(grads, s, p)
        return optax.apply_updates(p, updates), s, value

    return jax.jit(step), jnp.full(4, 1e20), tx.init(jnp.ones(4)), X


# ---- shard_map


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
