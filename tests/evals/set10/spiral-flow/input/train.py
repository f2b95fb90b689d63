"""Flow matching on a two-arm spiral, plain JAX + optax."""
import functools
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

N_ITER = 6000
CHUNK = 500
BATCH = 128
WIDTH = 96


class State(NamedTuple):
    params: list
    opt_state: optax.OptState
    key: jax.Array


def spiral(key, n):
    """endless supply of points: every call with a fresh key gives fresh points"""
    k1, k2, k3 = jax.random.split(key, 3)
    r = 3.0 * jnp.sqrt(jax.random.uniform(k1, (n,)))
    arm = jnp.pi * jax.random.bernoulli(k2, 0.5, (n,))
    xy = jnp.stack([r * jnp.cos(1.6 * r + arm), r * jnp.sin(1.6 * r + arm)], -1)
    return (xy + 0.08 * jax.random.normal(k3, (n, 2))) / 1.5


def init_mlp(key, sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        w = jax.random.normal(jax.random.fold_in(key, i), (a, b)) * jnp.sqrt(2.0 / a)
        layers.append({"w": w, "b": jnp.zeros(b)})
    return layers


def velocity(params, x, t):
    freq = jnp.arange(1, 5) * jnp.pi
    h = jnp.concatenate([x, jnp.sin(freq * t[:, None]), jnp.cos(freq * t[:, None])], -1)
    for layer in params[:-1]:
        h = jax.nn.silu(h @ layer["w"] + layer["b"])
    return h @ params[-1]["w"] + params[-1]["b"]


def fm_loss(params, key, n=BATCH):
    k_data, k_noise, k_time = jax.random.split(key, 3)
    x1 = spiral(k_data, n)
    x0 = jax.random.normal(k_noise, x1.shape)
    t = jax.random.uniform(k_time, (n,))
    xt = (1 - t)[:, None] * x0 + t[:, None] * x1
    err = velocity(params, xt, t) - (x1 - x0)
    return jnp.mean(jnp.sum(err ** 2, -1))


schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, 200, N_ITER, 1e-5)
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))


def step(state, i):
    key, sub = jax.random.split(state.key)
    loss, grads = jax.value_and_grad(fm_loss)(state.params, sub)
    updates, opt_state = tx.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    return state._replace(params=params, opt_state=opt_state), loss


@jax.jit
def run_chunk(state):
    return jax.lax.scan(step, state, jnp.arange(CHUNK))


@functools.partial(jax.jit, static_argnames="n")
def sample(params, key, n=2000):
    x = jax.random.normal(key, (n, 2))

    def euler(x, i):
        t = jnp.full((n,), i / 50.0)
        return x + velocity(params, x, t) / 50.0, None

    return jax.lax.scan(euler, x, jnp.arange(50))[0]


@jax.jit
def chamfer(a, b):
    d = jnp.sqrt(jnp.sum((a[:, None] - b[None]) ** 2, -1) + 1e-12)
    return d.min(1).mean() + d.min(0).mean()


def main():
    root = jax.random.key(2024)
    k_init, k_train, k_val, k_ref, k_gen = jax.random.split(root, 5)
    params = init_mlp(k_init, [2 + 8, WIDTH, WIDTH, WIDTH, 2])
    state = State(params, tx.init(params), k_train)
    val_loss = jax.jit(lambda p: fm_loss(p, k_val, 4096))
    reference = spiral(k_ref, 2000)
    print("params", sum(p.size for p in jax.tree.leaves(params)), "iterations", N_ITER)
    start = time.time()
    for chunk in range(N_ITER // CHUNK):
        state, losses = run_chunk(state)
        gen = sample(state.params, k_gen)
        print(f"iter {(chunk + 1) * CHUNK:5d}  loss {float(losses.mean()):.4f}  val {float(val_loss(state.params)):.4f}  "
              f"chamfer {float(chamfer(gen, reference)):.3f}  {time.time() - start:.1f}s", flush=True)


if __name__ == "__main__":
    main()
