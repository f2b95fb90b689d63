import jax
import jax.numpy as jnp

ALPHA = 0.05


def exact(x, t):
    return jnp.exp(-ALPHA * jnp.pi ** 2 * t) * jnp.sin(jnp.pi * x)


def init_net(key, sizes=(2, 48, 48, 1)):
    layers = []
    for k, i, o in zip(jax.random.split(key, len(sizes) - 1), sizes[:-1], sizes[1:]):
        layers.append((jax.random.normal(k, (i, o)) * jnp.sqrt(1.0 / i), jnp.zeros(o)))
    return layers


def field(params, x, t):
    h = jnp.stack([x, t])
    for w, b in params[:-1]:
        h = jnp.tanh(h @ w + b)
    w, b = params[-1]
    return (h @ w + b)[0]


def residual(params, x, t):
    u_t = jax.grad(field, 2)(params, x, t)
    u_xx = jax.grad(jax.grad(field, 1), 1)(params, x, t)
    return u_t - ALPHA * u_xx


def total_loss(params, pts):
    xi, ti, x0, tb = pts
    pde = jax.vmap(residual, (None, 0, 0))(params, xi, ti)
    start = jax.vmap(field, (None, 0, None))(params, x0, 0.0) - exact(x0, 0.0)
    left = jax.vmap(field, (None, None, 0))(params, 0.0, tb)
    right = jax.vmap(field, (None, None, 0))(params, 1.0, tb)
    parts = {"pde": jnp.mean(pde ** 2), "ic": jnp.mean(start ** 2), "bc": jnp.mean(left ** 2 + right ** 2)}
    return parts["pde"] + 10 * parts["ic"] + 10 * parts["bc"], parts
