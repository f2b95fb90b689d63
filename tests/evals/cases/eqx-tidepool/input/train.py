import jax
import jax.numpy as jnp
import equinox as eqx
import numpy as np
import optax
from tqdm import trange

from net import Standardize, TidePool

MEAN = np.array([14.0, 33.0, 8.1, 1.2, 0.4], np.float32)  # temperature, salinity, pH, depth, light
STD = np.array([4.0, 2.0, 0.2, 0.5, 0.25], np.float32)


def pools(n, seed):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 5)).astype(np.float32)
    o2 = 8.5 - 1.1 * z[:, 0] + 0.8 * np.tanh(2 * z[:, 4]) * (z[:, 2] > 0) - 0.5 * z[:, 3] * z[:, 1] + 0.15 * rng.standard_normal(n)
    return z * STD + MEAN, o2.astype(np.float32)


def main():
    x, y = pools(3000, 1)
    xv, yv = pools(600, 2)
    model = TidePool(
        Standardize(jnp.asarray(MEAN), jnp.asarray(STD)),
        Standardize(jnp.asarray([y.mean()]), jnp.asarray([y.std()])),
        jax.random.key(0),
    )
    tx = optax.adamw(optax.cosine_decay_schedule(3e-3, 3600), weight_decay=0.15)
    state = tx.init(eqx.filter(model, eqx.is_inexact_array))
    target = (y - y.mean()) / y.std()

    def loss_fn(model, x, t):
        return jnp.mean((jax.vmap(model)(x) - t) ** 2)

    @eqx.filter_jit
    def step(model, state, x, t):
        loss, grads = eqx.filter_value_and_grad(loss_fn)(model, x, t)
        updates, state = tx.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), state, loss

    @eqx.filter_jit
    def mae(model, x, y):
        return jnp.mean(jnp.abs(jax.vmap(model.oxygen)(x) - y))

    rng = np.random.default_rng(0)
    bar = trange(60, mininterval=5)
    for epoch in bar:
        losses = []
        for b in rng.permutation(len(x)).reshape(60, 50):
            model, state, loss = step(model, state, x[b], target[b])
            losses.append(float(loss))
        if epoch % 6 == 5:
            bar.write(f"epoch {epoch:2d} train mse (std units) {np.mean(losses):.4f} val mae mg/l {float(mae(model, xv, yv)):.4f} "
                      f"bias {float(jnp.mean(jax.vmap(model.oxygen)(xv)) - yv.mean()):+.4f}")


if __name__ == "__main__":
    main()
