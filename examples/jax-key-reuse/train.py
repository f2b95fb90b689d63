"""Denoise 1-D signals with a small residual network in JAX: every step draws fresh noise to remove."""

import jax
import jax.numpy as jnp
import optax

LENGTH, WIDTH, BATCH, STEPS = 32, 64, 64, 600
NOISE = 0.5


def init(key):
    k1, k2, k3 = jax.random.split(key, 3)
    return {
        "w1": jax.random.normal(k1, (LENGTH, WIDTH)) / LENGTH**0.5,
        "b1": jnp.zeros(WIDTH),
        "w2": jax.random.normal(k2, (WIDTH, WIDTH)) / WIDTH**0.5,
        "b2": jnp.zeros(WIDTH),
        "w3": jax.random.normal(k3, (WIDTH, LENGTH)) * 0.01,
    }


def apply(params, x):
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    h = h + jnp.tanh(h @ params["w2"] + params["b2"])
    return x - h @ params["w3"]


def make_signals(key, count):
    k_rate, k_phase = jax.random.split(key)
    rate = jax.random.uniform(k_rate, (count, 1), minval=0.5, maxval=2.0)
    phase = jax.random.uniform(k_phase, (count, 1), maxval=2 * jnp.pi)
    return jnp.sin(rate * jnp.linspace(0.0, 4.0, LENGTH) + phase)


def loss_fn(params, clean, noise):
    return jnp.mean((apply(params, clean + noise) - clean) ** 2)


def main():
    key = jax.random.PRNGKey(0)
    key, k_init, k_valid, k_valid_noise = jax.random.split(key, 4)
    params = init(k_init)
    valid = make_signals(k_valid, 256)
    valid_noise = NOISE * jax.random.normal(k_valid_noise, valid.shape)
    optimizer = optax.adam(3e-3)
    state = optimizer.init(params)

    @jax.jit
    def update(params, state, clean, noise):
        loss, grads = jax.value_and_grad(loss_fn)(params, clean, noise)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, loss, optax.global_norm(grads)

    for step in range(1, STEPS + 1):
        clean = make_signals(key, BATCH)
        noise = NOISE * jax.random.normal(key, clean.shape)
        params, state, loss, norm = update(params, state, clean, noise)
        if step % 20 == 0:
            val_loss = loss_fn(params, valid, valid_noise)
            print(f"step={step} loss={loss:.6f} grad_norm={norm:.5f} val_loss={val_loss:.6f}", flush=True)


if __name__ == "__main__":
    main()
