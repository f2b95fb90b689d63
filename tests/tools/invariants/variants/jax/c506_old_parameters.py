"""Results of pure functions, gradients of another argument, parameters of before."""
import jax, jax.numpy as jnp, optax
from functools import partial
from flax import serialization
from flax.training import checkpoints
def loss(p, t, x): return jnp.mean((x @ p - jax.lax.stop_gradient(x @ t)) ** 2)
def update(student, teacher, s, x):
    g = jax.grad(loss, argnums=1)(student, teacher, x)  # FAULT C536
    u, s = tx.update(g, s, student)
    student = optax.apply_updates(student, u)
    return student, teacher, s
tx = optax.adam(1e-3)
def evaluate(p, x): return jnp.mean((x @ p) ** 2)
def main(data, val, state):
    checkpoints.restore_checkpoint("d", state)  # FAULT C509
    student = teacher = jnp.zeros(3)
    s = tx.init(student)
    ev = jax.jit(partial(evaluate, student))  # FAULT C506
    for x in data:
        student, teacher, s = update(student, teacher, s, x)
        print(ev(val))
    return student
