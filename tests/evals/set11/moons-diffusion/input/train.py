"""Small denoising diffusion model on two moons. python train.py [--steps N]"""
import argparse
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct

T = 200


@struct.dataclass
class State:
    step: jnp.ndarray
    params: Any
    ema: Any
    opt_state: Any


def two_moons(n, rng):
    a = rng.uniform(0, np.pi, n)
    top = rng.random(n) < 0.5
    x = np.where(top, np.cos(a), 1 - np.cos(a))
    y = np.where(top, np.sin(a), 0.5 - np.sin(a))
    pts = np.stack([x - 0.5, y - 0.25], 1) + 0.06 * rng.normal(size=(n, 2))
    return (pts * 1.3).astype(np.float32)


def cosine_alphas():
    s = np.arange(T + 1) / T
    f = np.cos((s + 0.008) / 1.008 * np.pi / 2) ** 2
    betas = np.clip(1 - f[1:] / f[:-1], 0, 0.999)
    return jnp.asarray(np.cumprod(1 - betas), jnp.float32), jnp.asarray(betas, jnp.float32)


ABAR, BETAS = cosine_alphas()


def init_params(key, width=128, emb=64):
    sizes = [(2 + emb, width), (width, width), (width, width), (width, 2)]
    keys = jax.random.split(key, len(sizes))
    return [{"w": jax.random.normal(k, s) * jnp.sqrt(2.0 / s[0]), "b": jnp.zeros(s[1])} for k, s in zip(keys, sizes)]


def time_embedding(t, dim=64):
    freq = jnp.exp(-jnp.log(1e4) * jnp.arange(dim // 2) / (dim // 2))
    ang = t[:, None] * freq[None]
    return jnp.concatenate([jnp.sin(ang), jnp.cos(ang)], -1)


def eps_model(params, x, t):
    h = jnp.concatenate([x, time_embedding(t)], -1)
    for layer in params[:-1]:
        h = jax.nn.silu(h @ layer["w"] + layer["b"])
    return h @ params[-1]["w"] + params[-1]["b"]


def denoise_loss(params, x0, key):
    kt, ke = jax.random.split(key)
    t = jax.random.randint(kt, (x0.shape[0],), 0, T)
    eps = jax.random.normal(ke, x0.shape)
    ab = ABAR[t][:, None]
    xt = jnp.sqrt(ab) * x0 + jnp.sqrt(1 - ab) * eps
    return jnp.mean((eps_model(params, xt, t.astype(jnp.float32)) - eps) ** 2)


def make_step(tx, base_key, decay):
    @jax.jit
    def step(state, x0):
        key = jax.random.fold_in(base_key, state.step)
        loss, grads = jax.value_and_grad(denoise_loss)(state.params, x0, key)
        updates, opt_state = tx.update(grads, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        ema = optax.incremental_update(params, state.ema, 1 - decay)
        return state.replace(params=params, ema=ema, opt_state=opt_state), loss
    return step


@jax.jit
def sample(params, key):
    k0, key = jax.random.split(key)
    x = jax.random.normal(k0, (512, 2))

    def body(x, inp):
        t, k = inp
        eps = eps_model(params, x, jnp.full((x.shape[0],), t, jnp.float32))
        b, ab = BETAS[t], ABAR[t]
        prev = jnp.where(t > 0, ABAR[t - 1], 1.0)
        x0 = jnp.clip((x - jnp.sqrt(1 - ab) * eps) / jnp.sqrt(ab), -3.0, 3.0)
        mean = jnp.sqrt(prev) * b / (1 - ab) * x0 + jnp.sqrt(1 - b) * (1 - prev) / (1 - ab) * x
        std = jnp.sqrt(b * (1 - prev) / (1 - ab))
        return mean + std * jax.random.normal(k, x.shape), None

    x, _ = jax.lax.scan(body, x, (jnp.arange(T)[::-1], jax.random.split(key, T)))
    return x


def energy_distance(a, b):
    d = lambda u, v: np.linalg.norm(u[:, None] - v[None], axis=-1).mean()
    return 2 * d(a, b) - d(a, a) - d(b, b)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1200)
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--ema", type=float, default=0.995)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()

    rng = np.random.default_rng(args.seed)
    train, val = two_moons(8000, rng), two_moons(2000, rng)
    init_key, noise_key = jax.random.split(jax.random.PRNGKey(args.seed))
    params = init_params(init_key)
    tx = optax.chain(optax.clip_by_global_norm(1.0),
                     optax.adamw(optax.warmup_cosine_decay_schedule(0.0, args.lr, 200, args.steps), weight_decay=1e-4))
    state = State(step=jnp.zeros((), jnp.int32), params=params, ema=params, opt_state=tx.init(params))
    step = make_step(tx, noise_key, args.ema)
    val_loss = jax.jit(denoise_loss)

    running = []
    with open("metrics.jsonl", "w") as fh:
        for it in range(1, args.steps + 1):
            x0 = train[rng.integers(0, len(train), args.batch)]
            state, loss = step(state, x0)
            running.append(loss)
            if it % 200 == 0:
                tr = float(jnp.stack(running).mean())
                running.clear()
                vl = float(val_loss(state.ema, val, jax.random.PRNGKey(99)))
                ed = float(energy_distance(np.asarray(sample(state.ema, jax.random.PRNGKey(7))), val[:512]))
                fh.write(json.dumps({"iter": it, "train": round(tr, 5), "val": round(vl, 5), "energy": round(ed, 5)}) + "\n")
                print(f"iter {it:5d}  train {tr:.4f}  val {vl:.4f}  energy distance of samples {ed:.4f}", flush=True)


if __name__ == "__main__":
    main()
