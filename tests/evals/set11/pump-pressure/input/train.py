"""Pressure model of pump 7: clock features + flow -> pressure. Settings in config.yaml."""
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import yaml


def load(path):
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return {"t": table[:, 0], "flow": table[:, 1], "p": table[:, 2]}


def clock(t, period):
    a = 2 * jnp.pi * jnp.mod(t, period) / period
    return jnp.stack([jnp.sin(a), jnp.cos(a), jnp.sin(2 * a), jnp.cos(2 * a)], -1)


def features(t, flow, cfg):
    f = flow[:, None] - 0.7
    return jnp.concatenate([clock(t, cfg["period_day_s"]), clock(t, cfg["period_stroke_s"]), 3.0 * f], -1)


def init(key, d_in, width):
    k = jax.random.split(key, 3)
    dims = [(d_in, width), (width, width), (width, 1)]
    return [(jax.random.normal(ki, d) / np.sqrt(d[0]), jnp.zeros(d[1])) for ki, d in zip(k, dims)]


def forward(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[:, 0]


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    raw = load(cfg["data"])
    rng = np.random.default_rng(cfg["seed"])
    order = rng.permutation(len(raw["p"]))
    n_val = int(len(order) * cfg["val_fraction"])
    mean, std = raw["p"][order[n_val:]].mean(), raw["p"][order[n_val:]].std()
    raw["p"] = (raw["p"] - mean) / std
    val = {k: jnp.asarray(v[order[:n_val]]) for k, v in raw.items()}
    train = {k: jnp.asarray(v[order[n_val:]]) for k, v in raw.items()}
    n = len(train["p"])
    per_epoch = n // cfg["batch"]
    print(f"rows: train {n} val {n_val}; pressure mean {mean:.3f} std {std:.3f} bar")

    def loss_fn(params, batch):
        x = features(batch["t"], batch["flow"], cfg)
        return jnp.mean((forward(params, x) - batch["p"]) ** 2)

    params = init(jax.random.PRNGKey(cfg["seed"]), 9, cfg["width"])
    tx = optax.adam(optax.cosine_decay_schedule(cfg["lr"], cfg["epochs"] * per_epoch))
    opt_state = tx.init(params)

    @partial(jax.jit, donate_argnums=(0, 1))
    def epoch_fn(params, opt_state, idx):
        def body(carry, i):
            params, opt_state = carry
            batch = jax.tree.map(lambda a: a[i], train)
            loss, g = jax.value_and_grad(loss_fn)(params, batch)
            up, opt_state = tx.update(g, opt_state, params)
            return (optax.apply_updates(params, up), opt_state), loss

        (params, opt_state), losses = jax.lax.scan(body, (params, opt_state), idx)
        return params, opt_state, losses.mean()

    eval_fn = jax.jit(loss_fn)
    for epoch in range(1, cfg["epochs"] + 1):
        idx = rng.permutation(n)[: per_epoch * cfg["batch"]].reshape(per_epoch, -1)
        params, opt_state, tr = epoch_fn(params, opt_state, idx)
        if epoch % 5 == 0 or epoch == 1:
            va = float(eval_fn(params, val))
            print(f"epoch {epoch:3d}  train mse {float(tr):.4f}  val mse {va:.4f}  val R2 {1 - va / float(jnp.var(val['p'])):.3f}")


if __name__ == "__main__":
    main()
