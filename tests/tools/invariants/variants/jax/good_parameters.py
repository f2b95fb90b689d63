"""Results that are used, and a step that is taken at another point on purpose."""
import jax, jax.numpy as jnp, optax, equinox as eqx
from functools import partial
from flax import serialization
def loss(p, t, x): return jnp.mean((x @ p - jax.lax.stop_gradient(x @ t)) ** 2)
def update(student, teacher, s, x):
    g = jax.grad(loss)(student, teacher, x)
    u, s = tx.update(g, s, student)
    student = optax.apply_updates(student, u)
    teacher = optax.incremental_update(student, teacher, 0.01)
    return student, teacher, s
def maml(params, x, y):
    fast = params - 0.1 * jax.grad(loss)(params, params, x)
    g = jax.grad(loss)(fast, params, y)
    u, s = tx.update(g, tx.init(params))
    return optax.apply_updates(params, u)
tx = optax.adam(1e-3)
def evaluate(cfg, p, x): return jnp.mean((x @ p) ** 2)
def main(data, val, cfg, blob):
    student = teacher = jnp.zeros(3)
    student = serialization.from_bytes(student, blob)
    s = tx.init(student)
    ev = jax.jit(partial(evaluate, cfg))
    first = partial(evaluate, cfg, student)
    print(first(val))
    for x in data:
        student, teacher, s = update(student, teacher, s, x)
        print(ev(student, val))
        late = partial(evaluate, cfg, student)
        print(late(val))
    return student
