"""The weights that are kept small are those of the state around the loss, and not those that are differentiated."""

import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState


def size_of(params):
    return sum(jnp.sum(leaf ** 2) for leaf in jax.tree.leaves(params))


@jax.jit
def step(state: TrainState, batch):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, batch["x"])
        fit = optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()
        small = size_of(state.params)
        total = fit + 1e-4 * small  # FAULT C539
        return total, {"fit": fit, "small": small}

    (loss, told), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads), loss, told
