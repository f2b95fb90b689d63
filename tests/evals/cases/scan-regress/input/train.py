"""Fit a noisy 2-d surface with a small MLP, the whole epoch as one lax.scan (pure jax, no libraries)."""
from functools import partial

import jax
import jax.numpy as jnp

N_TRAIN, N_TEST = 4000, 1000
WIDTHS = (2, 128, 128, 1)


def surface(key, n):
    kx, ke = jax.random.split(key)
    x = jax.random.uniform(kx, (n, 2), minval=-1.0, maxval=1.0)
    y = jnp.sin(4 * x[:, 0]) * jnp.cos(3 * x[:, 1]) + 0.5 * x[:, 0] * x[:, 1]
    return x, y + 0.1 * jax.random.normal(ke, (n,))


def init(key):
    params = []
    for k, (a, b) in zip(jax.random.split(key, len(WIDTHS) - 1), zip(WIDTHS[:-1], WIDTHS[1:])):
        params.append({"w": jax.random.normal(k, (a, b)) * jnp.sqrt(2.0 / a), "b": jnp.zeros(b)})
    return params


def mlp(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return (x @ params[-1]["w"] + params[-1]["b"])[:, 0]


def mse(params, x, y):
    return jnp.mean((mlp(params, x) - y) ** 2)


def adam_init(params):
    zeros = jax.tree.map(jnp.zeros_like, params)
    return {"m": zeros, "v": zeros, "t": jnp.zeros((), jnp.int32)}


def adam(grads, opt, params, lr, b1=0.9, b2=0.999, eps=1e-8):
    t = opt["t"] + 1
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, opt["m"], grads)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, opt["v"], grads)
    c1, c2 = 1 - b1 ** t, 1 - b2 ** t
    params = jax.tree.map(lambda p, m, v: p - lr * (m / c1) / (jnp.sqrt(v / c2) + eps), params, m, v)
    return params, {"m": m, "v": v, "t": t}


def sgd_step(x, y, lr, bs, carry, _):
    params, opt, key = carry
    pick = jax.random.randint(key, (bs,), 0, x.shape[0])
    loss, grads = jax.value_and_grad(mse)(params, x[pick], y[pick])
    params, opt = adam(grads, opt, params, lr)
    return (params, opt, key), loss


@partial(jax.jit, static_argnames=("steps", "bs"))
def epoch(params, opt, key, x, y, lr, steps, bs):
    body = partial(sgd_step, x, y, lr, bs)
    (params, opt, _), losses = jax.lax.scan(body, (params, opt, key), None, length=steps)
    return params, opt, losses


def main():
    k_data, k_test, k_init, k_train = jax.random.split(jax.random.key(42), 4)
    x, y = surface(k_data, N_TRAIN)
    xt, yt = surface(k_test, N_TEST)
    params = init(k_init)
    opt = adam_init(params)
    print("epoch\ttrain_mse\tlast_step\ttest_mse")
    for e in range(15):
        params, opt, losses = epoch(params, opt, k_train, x, y, 3e-3, 120, 64)
        test = mse(params, xt, yt)
        print(f"{e}\t{losses.mean():.5f}\t\t{losses[-1]:.5f}\t\t{test:.5f}")


if __name__ == "__main__":
    main()
