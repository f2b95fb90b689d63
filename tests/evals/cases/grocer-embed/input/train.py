import json

import jax
import jax.numpy as jnp
import numpy as np
import optax

HP = json.load(open("params.json"))


def sales_table(rows, seed):
    """weekday, promotion, temperature, store id -> log sales.  The chain had 40 branches at the last export."""
    rng = np.random.default_rng(seed)
    fixed = np.random.default_rng(100)
    level, slope = fixed.normal(3.0, 0.9, 40), fixed.normal(0.5, 0.4, 40)
    store = rng.integers(0, 40, rows)
    weekday = rng.integers(0, 7, rows)
    promo = rng.integers(0, 2, rows)
    temp = rng.normal(size=rows)
    y = level[store] + slope[store] * promo + 0.3 * np.sin(weekday) + 0.2 * temp + 0.1 * rng.normal(size=rows)
    feats = np.concatenate([np.eye(7)[weekday], promo[:, None], temp[:, None]], 1)
    return store.astype(np.int32), feats.astype(np.float32), y.astype(np.float32)


def init_params(key):
    k1, k2, k3 = jax.random.split(key, 3)
    width = 9 + HP["emb_dim"]
    return {
        "store": 0.1 * jax.random.normal(k1, (HP["n_stores"], HP["emb_dim"])),
        "h": {"w": jax.random.normal(k2, (width, HP["hidden"])) / np.sqrt(width), "b": jnp.zeros(HP["hidden"])},
        "o": {"w": jax.random.normal(k3, (HP["hidden"], 1)) / np.sqrt(HP["hidden"]), "b": jnp.zeros(1)},
    }


def predict(p, store, feats):
    e = p["store"][store]
    h = jax.nn.gelu(jnp.concatenate([e, feats], axis=-1) @ p["h"]["w"] + p["h"]["b"])
    return (h @ p["o"]["w"] + p["o"]["b"])[:, 0]


def objective(p, store, feats, y):
    return jnp.mean((predict(p, store, feats) - y) ** 2)


def make_step(tx):
    @jax.jit
    def step(p, s, store, feats, y):
        mse, g = jax.value_and_grad(objective)(p, store, feats, y)
        u, s = tx.update(g, s, p)
        return optax.apply_updates(p, u), s, mse
    return step


def per_store_rmse(p, table):
    store, feats, y = table
    err = np.asarray(predict(p, store, feats)) - y
    return np.array([np.sqrt(np.mean(err[store == k] ** 2)) for k in range(store.max() + 1)])


def main():
    train, test = sales_table(16000, 1), sales_table(6000, 2)
    p = init_params(jax.random.key(HP["seed"]))
    tx = optax.adam(optax.cosine_decay_schedule(HP["lr"], HP["steps"]))
    s, step = tx.init(p), make_step(tx)
    rng = np.random.default_rng(HP["seed"])
    run = None
    for it in range(HP["steps"] + 1):
        i = rng.integers(0, len(train[2]), HP["batch"])
        p, s, mse = step(p, s, train[0][i], train[1][i], train[2][i])
        run = float(mse) if run is None else 0.98 * run + 0.02 * float(mse)
        if it % 250 == 0:
            print(f"it {it:5d}  mse {run:.4f}  test rmse {float(np.sqrt(objective(p, *test))):.4f}", flush=True)
    print("rmse per store (test)")
    r = per_store_rmse(p, test)
    for k in range(0, len(r), 8):
        print("  " + "  ".join(f"{j:02d}:{r[j]:.2f}" for j in range(k, min(k + 8, len(r)))))
    print(f"median {np.median(r):.3f}  worst {r.max():.3f}")


if __name__ == "__main__":
    main()
