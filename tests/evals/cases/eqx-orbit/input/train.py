"""Neural surrogate of a pendulum's vector field (equinox + optax)."""
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


class Settings:
    lr = 0.02
    batch = 64
    steps = 1500
    drops = {500: 0.1, 1000: 0.1}
    seed = 0


def field(s):
    theta, omega = s
    return jnp.stack([omega, -9.81 * jnp.sin(theta) / 2 - 0.2 * omega])


def sample(key, n):
    k1, k2 = jax.random.split(key)
    s = jax.random.uniform(k1, (n, 2), minval=-3.0, maxval=3.0)
    return s, jax.vmap(field)(s) + 0.3 * jax.random.normal(k2, (n, 2))


class Surrogate(eqx.Module):
    net: eqx.nn.MLP

    def __init__(self, key):
        self.net = eqx.nn.MLP(2, 2, 48, 2, activation=jnp.tanh, key=key)

    def __call__(self, s):
        return self.net(s)


def mse(model, s, ds):
    return jnp.mean((jax.vmap(model)(s) - ds) ** 2)


@eqx.filter_jit
def update(model, state, s, ds):
    loss, grads = eqx.filter_value_and_grad(mse)(model, s, ds)
    direction, state = optax.scale_by_adam().update(grads, state)
    delta = jax.tree_util.tree_map(lambda d: -Settings.lr * d, direction)
    return eqx.apply_updates(model, delta), state, loss, optax.global_norm(delta)


def main():
    key = jax.random.PRNGKey(Settings.seed)
    key, k_model, k_test = jax.random.split(key, 3)
    model = Surrogate(k_model)
    state = optax.scale_by_adam().init(eqx.filter(model, eqx.is_inexact_array))
    s_test = jax.random.uniform(k_test, (512, 2), minval=-3.0, maxval=3.0)
    d_test = jax.vmap(field)(s_test)
    t0, window, moves = time.time(), [], []
    for step in range(1, Settings.steps + 1):
        if step in Settings.drops:
            Settings.lr *= Settings.drops[step]
        key, k = jax.random.split(key)
        s, ds = sample(k, Settings.batch)
        model, state, loss, moved = update(model, state, s, ds)
        window.append(float(loss))
        moves.append(float(moved))
        if step % 125 == 0:
            err = float(mse(model, s_test, d_test))
            print(f"{step:5d}  lr {Settings.lr:.1e}  loss {sum(window) / len(window):.4f}  |update| {sum(moves) / len(moves):.4f}  "
                  f"clean test mse {err:.5f}  ({time.time() - t0:.1f}s)")
            window, moves = [], []


if __name__ == "__main__":
    main()
