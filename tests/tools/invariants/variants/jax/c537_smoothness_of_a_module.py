"""A field is to be smooth: its curvature is taken of the module around the loss."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


def curvature(field, points):
    return jnp.mean(jax.vmap(jax.hessian(field))(points) ** 2)


def make_update(tx, weight):
    def update(field, state, points, values):
        @eqx.filter_value_and_grad
        def plain(net):
            return jnp.mean((jax.vmap(net)(points) - values) ** 2)

        def objective(net):
            miss = jnp.mean((jax.vmap(net)(points) - values) ** 2)
            return miss + weight * curvature(field, points)  # FAULT C537

        loss, grads = eqx.filter_value_and_grad(objective)(field)
        updates, state = tx.update(grads, state, field)
        return eqx.apply_updates(field, updates), state, loss, plain(field)[0]

    return update


tx = optax.adam(1e-3)
