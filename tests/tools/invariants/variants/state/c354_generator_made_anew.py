import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax

tx = optax.adam(1e-3)


@jax.jit
def step(params, opt_state, x):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((x @ p) ** 2))(params)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def run(seed, data):
    with open("state.pkl", "rb") as f:
        saved = pickle.load(f)
    params, opt_state = saved["params"], saved["opt_state"]
    rng = np.random.default_rng(seed)
    rng.bit_generator.state = saved["rng"]
    rng = np.random.default_rng(seed)  # FAULT C354
    for i in range(saved["step"], 1000):
        params, opt_state, loss = step(params, opt_state, data[rng.integers(0, len(data), 32)])
    with open("state.pkl", "wb") as f:
        pickle.dump({"params": params, "opt_state": opt_state, "rng": rng.bit_generator.state, "step": i}, f)


run(0, np.zeros((100, 4)))
