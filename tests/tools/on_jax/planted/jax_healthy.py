"""JAX functions in which nothing is wrong, many of them with infinities on the way: none may be named an origin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

HEALTHY: list[Callable[[], tuple[Any, ...]]] = []
X = jnp.asarray(np.random.default_rng(1).normal(size=(5, 4)), jnp.float32)
ONE_ZERO = jnp.array([1.0, 2.0, 0.0, 3.0, 4.0])


def healthy(make: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
    HEALTHY.append(make)
    return make


@healthy
def causal_mask() -> tuple[Any, ...]:
    def attend(x: Any) -> Any:
        keep = jnp.tril(jnp.ones((5, 5), bool))
        return (jax.nn.softmax(jnp.where(keep, x @ x.T, -jnp.inf), axis=-1) @ x).sum()

    return jax.jit(jax.value_and_grad(attend)), X


@healthy
def running_maximum() -> tuple[Any, ...]:
    def run(x: Any) -> Any:
        def body(c: Any, row: Any) -> tuple[Any, Any]:
            m, s = c
            new = jnp.maximum(m, row.max())
            return (new, s * jnp.exp(m - new) + jnp.exp(row - new).sum()), None

        (m, s), _ = lax.scan(body, (-jnp.inf, 0.0), x)
        return m + jnp.log(s)

    return jax.jit(run), X


@healthy
def double_where() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        safe = jnp.where(x > 0, x, 1.0)
        return jnp.where(x > 0, jnp.log(safe), 0.0).sum()

    return jax.jit(jax.value_and_grad(loss)), ONE_ZERO


@healthy
def forward_only_where() -> tuple[Any, ...]:
    return jax.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0).sum()), ONE_ZERO


@healthy
def best_so_far_starts_at_infinity() -> tuple[Any, ...]:
    def step(state: Any, x: Any) -> Any:
        loss = (x ** 2).mean()
        return {"best": state["best"], "loss": loss}

    return jax.jit(step), {"best": jnp.inf}, X


@healthy
def beam_scores_returned_with_infinities() -> tuple[Any, ...]:
    return jax.jit(lambda x: jnp.where(x > 0, x, -jnp.inf)), X


@healthy
def top_k_with_masked_logits() -> tuple[Any, ...]:
    def sample(key: Any, logits: Any) -> Any:
        kth = lax.top_k(logits, 3)[0][-1]
        masked = jnp.where(logits < kth, -jnp.inf, logits)
        return jax.random.categorical(key, masked)

    return jax.jit(sample), jax.random.key(0), jnp.arange(8.0)


@healthy
def log_of_zero_under_exp() -> tuple[Any, ...]:
    return jax.jit(lambda x: jnp.exp(jnp.log(x)).sum()), ONE_ZERO


@healthy
def hash_of_integers() -> tuple[Any, ...]:
    def mixed(x: Any) -> Any:
        h = x * jnp.uint32(2654435761)
        return (h ^ (h >> 16)).astype(jnp.float32).sum()

    return jax.jit(mixed), jnp.arange(9, dtype=jnp.uint32)


@healthy
def adam_loop() -> tuple[Any, ...]:
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    def step(p: Any, s: Any, x: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: (jnp.tanh(x @ p["a"]) ** 2).mean() + 0.0 * p["unused"].sum())(p)
        updates, s = tx.update(grads, s, p)
        return optax.apply_updates(p, updates), s, loss

    p = {"a": jnp.ones((4, 3)), "unused": jnp.zeros(2)}
    return jax.jit(step), p, tx.init(p), X


@healthy
def zero_gradients_in_adam() -> tuple[Any, ...]:
    tx = optax.adam(1e-3)
    p = jnp.ones((6, 2))

    def step(p: Any, s: Any) -> Any:
        updates, s = tx.update(jax.grad(lambda p: p[0].sum())(p), s, p)
        return optax.apply_updates(p, updates), s

    return jax.jit(step), p, tx.init(p)


@healthy
def safe_norm() -> tuple[Any, ...]:
    return jax.jit(jax.grad(lambda x: optax.safe_norm(x, 1e-8))), jnp.zeros(3)


@healthy
def logsumexp_of_masked() -> tuple[Any, ...]:
    def loss(x: Any) -> Any:
        return jax.nn.logsumexp(jnp.where(x > 0, x, -jnp.inf), axis=1).sum()

    return jax.jit(jax.value_and_grad(loss)), jnp.abs(X)


@healthy
def gamma_samples() -> tuple[Any, ...]:
    return jax.jit(lambda k: jax.random.gamma(k, 2.0, (20,)).sum()), jax.random.PRNGKey(0)


@healthy
def ctc_alignment() -> tuple[Any, ...]:
    def loss(logits: Any) -> Any:
        labels = jnp.array([[1, 2]])
        return optax.ctc_loss(logits, jnp.zeros((1, 6)), labels, jnp.zeros((1, 2))).mean()

    return jax.jit(jax.value_and_grad(loss)), jnp.asarray(np.random.default_rng(0).normal(size=(1, 6, 4)), jnp.float32)


@healthy
def while_with_infinite_start() -> tuple[Any, ...]:
    def run(x: Any) -> Any:
        def body(s: Any) -> Any:
            return s[1], s[1] * 0.5

        return lax.while_loop(lambda s: jnp.abs(s[0] - s[1]) > 1e-3, body, (jnp.inf, x))[1]

    return jax.jit(run), jnp.float32(3.0)
