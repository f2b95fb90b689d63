"""Daily unit sales per (store, article) with a small embedding MLP. Big effective batch through optax.MultiSteps."""
import json
import jax
import jax.numpy as jnp
import numpy as np
import optax

CONF = dict(stores=40, articles=120, rows=24000, micro_batch=32, accumulate=32, epochs=10,
            peak_lr=2e-2, warmup_frac=0.1, weight_decay=1e-4, seed=5)


def make_table(c):
    r = np.random.default_rng(c["seed"])
    s, a = r.integers(0, c["stores"], c["rows"]), r.integers(0, c["articles"], c["rows"])
    dow, promo = r.integers(0, 7, c["rows"]), (r.random(c["rows"]) < 0.15).astype(np.float32)
    base = r.normal(0, 0.6, c["stores"])[s] + r.normal(0, 0.9, c["articles"])[a]
    inter = (r.normal(0, 0.5, (c["stores"], 3))[s] * r.normal(0, 0.9, (c["articles"], 3))[a]).sum(1)
    week = np.sin(2 * np.pi * dow / 7) * 0.4
    y = base + inter + week + promo * (0.8 + r.normal(0, 0.3, c["articles"])[a]) + r.normal(0, 0.15, c["rows"])
    x = np.concatenate([np.eye(7)[dow], promo[:, None]], 1).astype(np.float32)
    return s.astype(np.int32), a.astype(np.int32), x, y.astype(np.float32)


def init(key, c, d=16, h=96):
    k = jax.random.split(key, 5)
    dense = lambda kk, i, o: {"w": jax.random.normal(kk, (i, o)) / jnp.sqrt(i), "b": jnp.zeros(o)}
    return {"store": 0.3 * jax.random.normal(k[0], (c["stores"], d)), "article": 0.3 * jax.random.normal(k[1], (c["articles"], d)),
            "l1": dense(k[2], 2 * d + 8, h), "l2": dense(k[3], h, h), "out": dense(k[4], h, 1)}


def predict(p, s, a, x):
    z = jnp.concatenate([p["store"][s], p["article"][a], x], 1)
    z = jax.nn.gelu(z @ p["l1"]["w"] + p["l1"]["b"])
    z = jax.nn.gelu(z @ p["l2"]["w"] + p["l2"]["b"])
    return (z @ p["out"]["w"] + p["out"]["b"])[:, 0]


def mse(p, batch):
    s, a, x, y = batch
    return jnp.mean((predict(p, s, a, x) - y) ** 2)


def build_optimizer(c, n_batches):
    total = n_batches * c["epochs"]
    lr = optax.warmup_cosine_decay_schedule(0.0, c["peak_lr"], int(total * c["warmup_frac"]), total, end_value=c["peak_lr"] * 0.01)
    inner = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(lr, weight_decay=c["weight_decay"]))
    return optax.MultiSteps(inner, every_k_schedule=c["accumulate"]), lr


def main():
    c = CONF
    table = make_table(c)
    cut = int(0.85 * c["rows"])
    tr, va = [t[:cut] for t in table], tuple(jnp.asarray(t[cut:]) for t in table)
    n_batches = cut // c["micro_batch"]
    opt, lr = build_optimizer(c, n_batches)
    params = init(jax.random.PRNGKey(c["seed"]), c)
    state = opt.init(params)
    print(json.dumps({"event": "start", "batches_per_epoch": n_batches, "effective_batch": c["micro_batch"] * c["accumulate"], **c}))

    @jax.jit
    def step(params, state, batch):
        loss, g = jax.value_and_grad(mse)(params, batch)
        upd, state = opt.update(g, state, params)
        return optax.apply_updates(params, upd), state, loss

    rng = np.random.default_rng(0)
    it = 0
    for epoch in range(c["epochs"]):
        order, losses = rng.permutation(cut), []
        for b in range(n_batches):
            idx = order[b * c["micro_batch"]:(b + 1) * c["micro_batch"]]
            params, state, loss = step(params, state, tuple(t[idx] for t in tr))
            losses.append(loss)
            it += 1
        print(json.dumps({"epoch": epoch, "it": it, "lr": round(float(lr(it)), 6), "train_mse": round(float(np.mean(jax.device_get(losses))), 4),
                          "val_mse": round(float(mse(params, va)), 4), "target_var": round(float(va[3].var()), 3)}))
    print(json.dumps({"event": "end", "updates": int(state.gradient_step)}))


if __name__ == "__main__":
    main()
