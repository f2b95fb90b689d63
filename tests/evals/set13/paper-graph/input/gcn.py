"""Two-layer graph network for the field of a paper (JAX, flax, optax)."""
import argparse

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from graphdata import load


class GCN(nn.Module):
    hidden: int
    n_out: int

    @nn.compact
    def __call__(self, x, adj, train):
        drop = nn.Dropout(0.4, deterministic=not train)
        own = nn.Dense(self.hidden)(x)
        near = nn.Dense(self.hidden, use_bias=False)(adj @ x)
        h = drop(nn.relu(own + near))
        return nn.Dense(self.n_out)(h) + nn.Dense(self.n_out, use_bias=False)(adj @ h)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--graph", default="graph")
    p.add_argument("--epochs", type=int, default=160)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.01)
    a = p.parse_args()
    g = load(a.graph)
    x, adj, y = jnp.asarray(g.x * 20), jnp.asarray(g.adj), jnp.asarray(g.y)
    masks = {k: jnp.asarray(v, jnp.float32) for k, v in g.masks.items()}
    model = GCN(a.hidden, int(g.y.max()) + 1)
    rng = jax.random.PRNGKey(0)
    params = model.init(rng, x, adj, False)
    tx = optax.adamw(a.lr, weight_decay=5e-3)
    state = tx.init(params)

    def loss_fn(params, key):
        logits = model.apply(params, x, adj, True, rngs={"dropout": key})
        ce = optax.softmax_cross_entropy_with_integer_labels(logits, y)
        return (ce * masks["train"]).sum() / masks["train"].sum()

    @jax.jit
    def step(params, state, key):
        loss, grads = jax.value_and_grad(loss_fn)(params, key)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    @jax.jit
    def accuracy(params):
        hit = model.apply(params, x, adj, False).argmax(-1) == y
        return {k: (hit * m).sum() / m.sum() for k, m in masks.items()}

    for epoch in range(1, a.epochs + 1):
        rng, key = jax.random.split(rng)
        params, state, loss = step(params, state, key)
        if epoch % 10 == 0:
            acc = accuracy(params)
            print(f"{epoch:4d} loss {loss:.4f} " + " ".join(f"{k} {float(v):.3f}" for k, v in acc.items()), flush=True)


if __name__ == "__main__":
    main()
