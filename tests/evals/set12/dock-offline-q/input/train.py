"""Fitted Q iteration for the docking task from logged transitions (JAX + optax)."""
import csv
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax


@dataclass(frozen=True)
class Config:
    logs: str = "logs"
    gamma: float = 0.97
    lr: float = 5e-4
    batch: int = 96
    steps: int = 3000
    sync_every: int = 100
    hidden: int = 48
    seed: int = 2


def load_logs(folder):
    cols = {"obs": [], "act": [], "rew": [], "next": [], "term": []}
    for path in sorted(Path(folder).glob("run_*.npz")):
        z = np.load(path)
        print(f"{path.name}: {len(z['act'])} transitions, reward sum {z['rew'].sum():.1f}")
        for k in cols:
            cols[k].append(z[k])
    return {k: jnp.asarray(np.concatenate(v)) for k, v in cols.items()}


def init(key, sizes):
    params = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append({"w": jax.random.normal(sub, (a, b)) * np.sqrt(2.0 / a), "b": jnp.zeros(b)})
    return params


def q_values(params, obs):
    h = obs
    for layer in params[:-1]:
        h = jax.nn.relu(h @ layer["w"] + layer["b"])
    return h @ params[-1]["w"] + params[-1]["b"]


def td_loss(params, target, batch, gamma):
    q = jnp.take_along_axis(q_values(params, batch["obs"]), batch["act"][:, None], 1)[:, 0]
    best = jnp.argmax(q_values(params, batch["next"]), -1)
    nxt = jnp.take_along_axis(q_values(target, batch["next"]), best[:, None], 1)[:, 0]
    goal = batch["rew"] + gamma * (1.0 - batch["term"]) * jax.lax.stop_gradient(nxt)
    err = q - goal
    return optax.huber_loss(err, delta=1.0).mean(), (q.mean(), jnp.abs(err).mean())


def main():
    cfg = Config()
    data = load_logs(cfg.logs)
    n, obs_dim = data["obs"].shape
    n_act = int(data["act"].max()) + 1
    key = jax.random.PRNGKey(cfg.seed)
    key, sub = jax.random.split(key)
    params = init(sub, (obs_dim, cfg.hidden, cfg.hidden, n_act))
    target = params
    opt = optax.adam(cfg.lr)
    state = opt.init(params)

    @partial(jax.jit, static_argnums=())
    def step(params, target, state, key):
        idx = jax.random.randint(key, (cfg.batch,), 0, n)
        batch = {k: v[idx] for k, v in data.items()}
        (loss, aux), grads = jax.value_and_grad(td_loss, has_aux=True)(params, target, batch, cfg.gamma)
        updates, state = opt.update(grads, state)
        return optax.apply_updates(params, updates), state, loss, aux

    ends = np.load(Path(cfg.logs) / "eval_starts.npz")
    rows = []
    for i in range(1, cfg.steps + 1):
        key, sub = jax.random.split(key)
        params, state, loss, (q, td) = step(params, target, state, sub)
        if i % cfg.sync_every == 0:
            target = params
        if i % 250 == 0:
            start_q = float(q_values(params, jnp.asarray(ends["obs"])).max(-1).mean())
            rows.append((i, float(loss), float(q), float(td), start_q))
            print(f"step {i:5d}  td loss {float(loss):.4f}  mean Q {float(q):7.3f}  |td| {float(td):.3f}  "
                  f"Q(start) {start_q:7.3f}  logged return {float(ends['ret'].mean()):.3f}", flush=True)
    with open("metrics.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["step", "td_loss", "mean_q", "abs_td", "start_q"])
        w.writerows(rows)


if __name__ == "__main__":
    main()
