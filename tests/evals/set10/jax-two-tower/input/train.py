"""Star ratings from two towers on pretrained user/item tables. Plain JAX + optax."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import yaml

with open("config.yaml") as fh:
    CFG = yaml.safe_load(fh)


def init_mlp(key, sizes):
    layers = {}
    for n, (i, o) in enumerate(zip(sizes[:-1], sizes[1:])):
        key, k = jax.random.split(key)
        layers[f"w{n}"] = jax.random.normal(k, (i, o)) * np.sqrt(2 / i)
        layers[f"b{n}"] = jnp.zeros(o)
    return layers


def init_params(key, tables):
    dim = tables["user"].shape[1]
    ku, ki, kh = jax.random.split(key, 3)
    out = CFG["tower"][-1]
    return {
        "user": {"table": jnp.asarray(tables["user"])},
        "item": {"table": jnp.asarray(tables["item"])},
        "user_tower": init_mlp(ku, [dim, *CFG["tower"]]),
        "item_tower": init_mlp(ki, [dim, *CFG["tower"]]),
        "head": {"w": jax.random.normal(kh, (out,)) / np.sqrt(out), "b": jnp.zeros(())},
    }


def mlp(p, h):
    n = len(p) // 2
    for i in range(n):
        h = h @ p[f"w{i}"] + p[f"b{i}"]
        if i < n - 1:
            h = jax.nn.relu(h)
    return h


def predict(params, user, item):
    u = mlp(params["user_tower"], params["user"]["table"][user])
    v = mlp(params["item_tower"], params["item"]["table"][item])
    return 3.0 + (jnp.tanh(u) * jnp.tanh(v)) @ params["head"]["w"] + params["head"]["b"]


def loss_fn(params, batch):
    user, item, stars = batch
    return jnp.mean((predict(params, user, item) - stars) ** 2)


def label_tree(params):
    def label(path, _):
        name = "/".join(k.key for k in path)
        return "frozen" if name.startswith(tuple(CFG["freeze"])) else "train"

    return jax.tree_util.tree_map_with_path(label, params)


def main():
    z = np.load("ratings.npz")
    user, item, stars = (jnp.asarray(z[k]) for k in ("user", "item", "stars"))
    user, item = user.astype(jnp.int32), item.astype(jnp.int32)
    n_val = 2000
    val = (user[-n_val:], item[-n_val:], stars[-n_val:])
    n = len(stars) - n_val

    params = init_params(jax.random.PRNGKey(CFG["seed"]), np.load("tables.npz"))
    sched = optax.warmup_cosine_decay_schedule(0.0, CFG["lr"], 100, CFG["steps"], 1e-5)
    tx = optax.multi_transform(
        {"train": optax.adamw(sched, weight_decay=CFG["weight_decay"]), "frozen": optax.set_to_zero()},
        label_tree(params))
    state = tx.init(params)
    print(f"{n} ratings, {n_val} held out, {sum(p.size for p in jax.tree.leaves(params))} parameters; "
          f"std of stars {float(jnp.std(stars)):.3f}")

    @jax.jit
    def update(params, state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss, optax.global_norm(grads)

    evaluate = jax.jit(loss_fn)
    rng = np.random.default_rng(CFG["seed"])
    t0, hist = time.time(), []
    for step in range(1, CFG["steps"] + 1):
        idx = rng.integers(0, n, CFG["batch"])
        params, state, loss, gnorm = update(params, state, (user[idx], item[idx], stars[idx]))
        hist.append(float(loss))
        if step % 150 == 0:
            print(f"step {step:5d}  train rmse {np.sqrt(np.mean(hist[-150:])):.3f}  "
                  f"val rmse {np.sqrt(float(evaluate(params, val))):.3f}  grad {float(gnorm):.3f}  {time.time() - t0:.0f}s", flush=True)


if __name__ == "__main__":
    main()
