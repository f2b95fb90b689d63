"""Origins in plain values: operations outside their domain, half precision, masks, integers, matrices, optimizers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax_planting import ONE_ZERO, X, net, planted, weights


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
