"""Gradients by an argument of the function around, applied to the student."""
import jax
import jax.numpy as jnp
import optax


def match(teacher, student, x):
    return jnp.mean((x @ jax.lax.stop_gradient(teacher) - x @ student) ** 2)


def transfer(teacher, student, data, tx):
    slope = jax.value_and_grad(match)

    @jax.jit
    def step(student, state, x):
        loss, g = slope(teacher, student, x)  # FAULT C536
        upd, state = tx.update(g, state, student)
        return optax.apply_updates(student, upd), state, loss

    state = tx.init(student)
    for x in data:
        student, state, loss = step(student, state, x)
    return student


transfer(jnp.ones(3), jnp.zeros(3), [jnp.ones((4, 3))] * 10, optax.sgd(0.1))
