"""Claim frequency with a Poisson network, exposure as offset (flax + optax)."""
import csv
import json
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

CONF = json.loads(Path("conf.json").read_text())
NUMERIC = ["driver_age", "car_age", "power", "bonus_malus", "density"]


class Frequency(nn.Module):
    hidden: tuple = (32, 16)

    @nn.compact
    def __call__(self, x, exposure):
        for h in self.hidden:
            x = nn.swish(nn.Dense(h)(x))
        rate = nn.Dense(1, bias_init=nn.initializers.constant(CONF["start_log_rate"]))(x)[:, 0]
        return rate + jnp.log(exposure)


def load(path):
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    x = np.array([[float(r[k]) for k in NUMERIC] for r in rows], dtype=np.float32)
    x[:, NUMERIC.index("density")] = np.log(x[:, NUMERIC.index("density")])
    exposure = np.array([float(r["exposure"]) for r in rows], dtype=np.float32)
    claims = np.array([float(r["claims"]) for r in rows], dtype=np.float32)
    return x, exposure, claims


def poisson_nll(log_mu, y):
    return jnp.exp(log_mu) - y * log_mu


def main():
    x, e, y = load(CONF["train"])
    xv, ev, yv = load(CONF["val"])
    mean, std = x.mean(0), x.std(0)
    x, xv = (x - mean) / std, (xv - mean) / std
    print(f"{len(x)} policies, {e.sum():.1f} years, {int(y.sum())} claims, frequency {y.sum() / e.sum():.4f}", flush=True)
    model = Frequency()
    params = model.init(jax.random.PRNGKey(CONF["seed"]), x[:2], e[:2])
    batches = len(x) // CONF["batch"]
    tx = optax.chain(optax.clip_by_global_norm(1.0),
                     optax.adam(optax.cosine_decay_schedule(CONF["lr"], CONF["epochs"] * batches)))
    state = tx.init(params)

    @jax.jit
    def step(params, state, xb, eb, yb):
        loss, grads = jax.value_and_grad(lambda p: poisson_nll(model.apply(p, xb, eb), yb).mean())(params)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    validate = jax.jit(lambda p: poisson_nll(model.apply(p, xv, ev), yv).mean())
    rng = np.random.default_rng(CONF["seed"])
    for epoch in range(CONF["epochs"]):
        order = rng.permutation(len(x))
        losses = []
        for b in range(batches):
            idx = order[b * CONF["batch"]:(b + 1) * CONF["batch"]]
            params, state, loss = step(params, state, x[idx], e[idx], y[idx])
            losses.append(float(loss))
            if epoch == 0 and b % 4 == 0:
                print(f"  step {b:3d}  nll {losses[-1]:.4f}", flush=True)
        print(f"epoch {epoch}  nll {np.mean(losses):.4f}  val nll {float(validate(params)):.4f}", flush=True)


if __name__ == "__main__":
    main()
