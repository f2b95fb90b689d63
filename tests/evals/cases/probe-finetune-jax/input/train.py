"""Adapt a pretrained sensor encoder to a new machine: the trunk stays fixed, only the head is fitted."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import random

SIGNAL, WIDTH, CLASSES = 40, 48, 5


def dense_init(key, n_in, n_out):
    return {"w": random.normal(key, (n_in, n_out)) / np.sqrt(n_in), "b": jnp.zeros(n_out)}


def init_params(key):
    ks = random.split(key, 4)
    return {
        "trunk": {"l1": dense_init(ks[0], SIGNAL, WIDTH), "l2": dense_init(ks[1], WIDTH, WIDTH)},
        "head": {"l1": dense_init(ks[2], WIDTH, WIDTH), "out": dense_init(ks[3], WIDTH, CLASSES)},
    }


def affine(p, x):
    return x @ p["w"] + p["b"]


def forward(params, x):
    h = jnp.tanh(affine(params["trunk"]["l1"], x))
    h = jax.nn.relu(affine(params["trunk"]["l2"], h))
    h = jax.nn.relu(affine(params["head"]["l1"], h))
    return affine(params["head"]["out"], h)


def make_machine(key, n, wear):
    kl, kp, kn = random.split(key, 3)
    y = random.randint(kl, (n,), 0, CLASSES)
    t = jnp.arange(SIGNAL)
    phase = random.uniform(kp, (n, 1)) * 6.28
    x = jnp.sin(phase + t[None] * (0.25 + 0.11 * y[:, None])) + wear * jnp.sin(2 * phase + t[None] * 0.9)
    return x + 0.4 * random.normal(kn, x.shape), y


def xent(params, x, y):
    logits = forward(params, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), (logits.argmax(-1) == y).mean()


def fit(params, tx, x, y, steps, key, tag, every, bs=64):
    state = tx.init(params)
    anchor = params["trunk"]

    @jax.jit
    def step(params, state, xb, yb):
        (value, acc), g = jax.value_and_grad(xent, has_aux=True)(params, xb, yb)
        upd, state = tx.update(g, state, params)
        return optax.apply_updates(params, upd), state, value, acc

    for i in range(steps):
        key, sub = random.split(key)
        ids = random.randint(sub, (bs,), 0, len(x))
        params, state, value, acc = step(params, state, x[ids], y[ids])
        if i % every == 0 or i == steps - 1:
            norm = optax.global_norm(params["trunk"])
            print(f"[{tag}] step {i:4d} xent {float(value):10.4f} acc {float(acc):.3f} |trunk| {float(norm):.3f}")
    return params


def main():
    key = random.PRNGKey(17)
    k_init, k_a, k_b, k_h, k1, k2 = random.split(key, 6)
    xa, ya = make_machine(k_a, 2000, wear=0.2)
    xb, yb = make_machine(k_b, 1200, wear=0.9)
    params = init_params(k_init)
    params = fit(params, optax.adam(2e-3), xa, ya, 200, k1, "pretrain", 50)
    print("accuracy on new machine before adaptation: %.3f" % float(xent(params, xb, yb)[1]))

    fresh = init_params(k_h)
    params = {"trunk": params["trunk"], "head": fresh["head"]}
    trainable = {"trunk": False, "head": True}
    tx = optax.masked(optax.adam(1e-3), trainable)
    params = fit(params, tx, xb[:1000], yb[:1000], 200, k2, "adapt", 25)
    value, acc = xent(params, xb[1000:], yb[1000:])
    print(f"adapted: held-out xent {float(value):.4f} acc {float(acc):.3f}")


if __name__ == "__main__":
    main()
