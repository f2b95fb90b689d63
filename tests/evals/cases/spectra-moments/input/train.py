"""Calibrate burst energies from a variable number of detector hits (flax + optax)."""
import argparse
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Burst(NamedTuple):
    hits: jnp.ndarray    # [B, H, 3] charge, time, radius
    valid: jnp.ndarray   # [B, H]
    energy: jnp.ndarray  # [B]


def simulate_bursts(rng, n, max_hits):
    n_hits = np.minimum(2 + rng.poisson(7, n), max_hits)
    # a handful of low-energy triggers only light up one tube
    n_hits[rng.random(n) < 0.004] = 1
    energy = rng.gamma(4.0, 1.0, n).astype(np.float32)
    charge = energy[:, None] * rng.uniform(0.5, 1.5, (n, max_hits))
    time = rng.exponential(1.0 / (0.3 + energy[:, None]), (n, max_hits))
    radius = rng.uniform(0, 2, (n, max_hits))
    valid = (np.arange(max_hits)[None] < n_hits[:, None]).astype(np.float32)
    hits = np.stack([charge, time, radius], -1).astype(np.float32) * valid[..., None]
    return Burst(hits, valid, energy)


class HitPool(nn.Module):
    """Summarise a set of hits by count, centre and spread of an embedded feature."""
    width: int

    @nn.compact
    def __call__(self, hits, valid):
        h = nn.gelu(nn.Dense(self.width)(hits))
        h = nn.Dense(self.width)(h)
        w = valid[..., None]
        count = w.sum(axis=1)
        centre = (h * w).sum(axis=1) / count
        spread = jnp.sqrt((w * (h - centre[:, None]) ** 2).sum(axis=1) / count)
        return jnp.concatenate([centre, spread, jnp.log(count)], axis=-1)


class EnergyNet(nn.Module):
    width: int = 32

    @nn.compact
    def __call__(self, hits, valid):
        z = HitPool(self.width)(hits, valid)
        z = nn.gelu(nn.Dense(2 * self.width)(z))
        return nn.Dense(1)(z)[:, 0]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--n", type=int, default=6000)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--iters", type=int, default=400)
    ap.add_argument("--lr", type=float, default=2e-3)
    args = ap.parse_args()

    rng = np.random.default_rng(11)
    data = simulate_bursts(rng, args.n, 16)
    holdout = simulate_bursts(rng, 512, 16)
    print(f"bursts {args.n}  hits/burst min {int(data.valid.sum(1).min())} mean {data.valid.sum(1).mean():.2f}")

    net = EnergyNet()
    variables = net.init(jax.random.PRNGKey(3), data.hits[:2], data.valid[:2])
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(args.lr, weight_decay=1e-4))
    opt_state = tx.init(variables)

    def objective(variables, burst):
        pred = net.apply(variables, burst.hits, burst.valid)
        return jnp.mean(optax.huber_loss(pred, burst.energy, delta=1.0))

    @jax.jit
    def update(variables, opt_state, burst):
        value, grads = jax.value_and_grad(objective)(variables, burst)
        gnorm = optax.global_norm(grads)
        updates, opt_state = tx.update(grads, opt_state, variables)
        return optax.apply_updates(variables, updates), opt_state, value, gnorm

    evaluate = jax.jit(objective)
    for it in range(args.iters):
        idx = rng.integers(0, args.n, args.batch)
        burst = Burst(*(jnp.asarray(a[idx]) for a in data))
        variables, opt_state, value, gnorm = update(variables, opt_state, burst)
        if it < 10 or it % 25 == 0:
            print(f"it {it:4d} | huber {float(value):8.4f} | |g| {float(gnorm):9.4f} | n_hits_min {int(burst.valid.sum(1).min())}")
    print(f"final holdout huber {float(evaluate(variables, holdout)):.4f}")


if __name__ == "__main__":
    main()
