"""Origins in gradients, in rules of one's own, under remat and in nested calls."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax_planting import ONE_ZERO, X, planted


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
