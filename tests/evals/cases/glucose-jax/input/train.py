"""Glucose forecast from insulin and meals. JAX, optax, noise augmentation and random minibatches inside jit."""
import argparse
import sys
import jax
import jax.numpy as jnp
import optax


def patients(key, n=4000):
    k1, k2, k3 = jax.random.split(key, 3)
    x = jax.random.normal(k1, (n, 16))
    w = jax.random.normal(k2, (16, 8)) / 4
    y = jnp.sin(2 * x @ w).sum(-1) / 2
    return x, y + 0.1 * jax.random.normal(k3, (n,))


def init_mlp(key, dims):
    out = []
    for k, (a, b) in zip(jax.random.split(key, len(dims) - 1), zip(dims, dims[1:])):
        out.append((jax.random.normal(k, (a, b)) * (2 / a) ** 0.5, jnp.zeros(b)))
    return out


def apply(params, x):
    *body, (w, b) = params
    for wi, bi in body:
        x = jax.nn.relu(x @ wi + bi)
    return (x @ w + b)[:, 0]


def loss_fn(params, x, y, key):
    x = x + 0.02 * jax.random.normal(key, x.shape)
    return jnp.mean((apply(params, x) - y) ** 2)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1500)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--seed", type=int, default=0)
    a = ap.parse_args()
    data_key, init_key, train_key = jax.random.split(jax.random.PRNGKey(a.seed), 3)
    x, y = patients(data_key)
    xt, yt, xv, yv = x[:3000], y[:3000], x[3000:], y[3000:]
    params = init_mlp(init_key, [16, 128, 128, 1])
    tx = optax.adamw(2e-3, weight_decay=1e-3)
    opt_state = tx.init(params)

    @jax.jit
    def update(params, opt_state, key):
        pick, noise = jax.random.split(key)
        idx = jax.random.choice(pick, xt.shape[0], (a.batch,), replace=False)
        loss, g = jax.value_and_grad(loss_fn)(params, xt[idx], yt[idx], noise)
        upd, opt_state = tx.update(g, opt_state, params)
        return optax.apply_updates(params, upd), opt_state, loss

    evaluate = jax.jit(lambda p: jnp.mean((apply(p, xv) - yv) ** 2))
    print("target variance %.3f" % float(yv.var()), file=sys.stderr)
    for step in range(1, a.steps + 1):
        params, opt_state, loss = update(params, opt_state, train_key)
        if step % 75 == 0:
            print(f"INFO - glucose - Running step {step}/{a.steps}. Loss: {float(loss):.6f} Holdout: {float(evaluate(params)):.4f}")


if __name__ == "__main__":
    main()
