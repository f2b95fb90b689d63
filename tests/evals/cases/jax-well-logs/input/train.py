import functools
import logging
import sys

import jax
import jax.numpy as jnp
import optax

from net import PorosityNet, batch_loss
from wells import well_logs

logging.basicConfig(format="[%(levelname).1s] %(message)s", level=logging.INFO, stream=sys.stdout)
logging.getLogger("jax").setLevel(logging.ERROR)


@functools.partial(jax.jit, static_argnums=0)
def update(tx, net, state, rows, targets):
    value, grads = jax.value_and_grad(batch_loss)(net, rows, targets)
    updates, state = tx.update(grads, state, net)
    return optax.apply_updates(net, updates), state, value, optax.global_norm(grads)


@jax.jit
def rmse(net, x, y):
    return jnp.sqrt(jnp.mean((jax.vmap(net)(x) - y) ** 2))


def main(epochs=30, size=64):
    x, y = map(jnp.asarray, well_logs(4096, 0))
    xv, yv = map(jnp.asarray, well_logs(1024, 1))
    key, sub = jax.random.split(jax.random.key(42))
    net = PorosityNet.create([5, 48, 48, 1], sub)
    tx = optax.adam(3e-3)
    state = tx.init(net)
    logging.info("target std %.4f", float(yv.std()))
    for ep in range(epochs):
        key, sub = jax.random.split(key)
        perm = jax.random.permutation(sub, len(x))
        total = 0.0
        for i in range(0, len(x), size):
            idx = perm[i:i + size]
            net, state, value, gnorm = update(tx, net, state, x[idx], y[idx])
            total += float(value)
        if ep % 3 == 2:
            logging.info("epoch %d huber %.5f gnorm %.4f val_rmse %.4f", ep, total / (len(x) // size), float(gnorm), float(rmse(net, xv, yv)))


if __name__ == "__main__":
    main()
