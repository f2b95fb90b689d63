"""JAX: keys from a counter, of a choice in a loop and of a mapped tree; divisors that are not 0; masks; JAX loops."""
import jax
import jax.numpy as jnp
import optax
from jax import random

LARGEST = 1e5


class Streams:
    def __init__(self, key):
        self.key, self.count = key, 0

    def next(self):
        self.count += 1
        return random.fold_in(self.key, self.count)


def layer(streams, rows, columns):
    return random.uniform(streams.next(), (rows, columns))


def network(key):
    streams = Streams(key)
    keys = random.split(streams.next(), 3)
    first = jax.vmap(lambda k: random.normal(k, (4, 4)))(keys)
    return {"first": first, "last": layer(streams, 4, 2), "out": layer(streams, 4, 2)}


def only_at(change, at):
    def maybe(picture, key, i):
        return jax.lax.cond(i == at, lambda p: change(p, key), lambda p: p, picture)

    return maybe


def brighter(picture, key):
    return picture + random.uniform(key, ())


def duller(picture, key):
    return picture * random.uniform(key, ())


def jittered(picture, key):
    order_key, one, two = random.split(key, 3)
    changes = only_at(brighter, 0), only_at(duller, 1)
    for i in random.permutation(order_key, jnp.arange(2)):
        picture = changes[0](picture, one, i)
        picture = changes[1](picture, two, i)
    return picture


def moved(key, steps, rounds):
    def body(_, state):
        rest, keys = state
        keys = jax.tree.map(lambda k: random.split(k, 2), keys)
        keys, drawn = jax.tree.map(lambda k: k[0], keys), jax.tree.map(lambda k: k[1], keys)
        return rest + random.normal(drawn["walk"], rest.shape), keys

    return jax.lax.fori_loop(0, rounds, body, (jnp.zeros(steps), {"walk": key}))


def projected(weights, parts, smallest: float):
    spread = 1.0 / weights.dot(parts)
    weights = jnp.where(spread < smallest, weights - parts * (1.0 / spread - 1.0 / smallest), weights)
    return jnp.where(spread > LARGEST, weights - parts * (1.0 / spread - 1.0 / LARGEST), weights)


def others(count, left_out):
    ids = jnp.arange(count)
    return ids[ids != left_out]


def attended(q, k, allowed, cap):
    scores = jnp.einsum("bqd,bkd->bqk", q, k).astype(jnp.float32)
    if cap:
        scores = jnp.tanh(scores / cap) * cap
    return jax.nn.softmax(jnp.where(allowed, scores, -2.3e38), axis=-1).astype(jnp.float16)


def error(params, x, y):
    weights = projected(params["last"][:, 0], x.mean(0), 0.5)
    return jnp.mean((x @ weights - y) ** 2)


params = network(random.key(0))
optimizer = optax.adam(1e-3)
state = optimizer.init(params)


@jax.jit
def step(params, state, x, y):
    loss, grads = jax.value_and_grad(error)(params, x, y)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


for x, y in [(jnp.ones((3, 4)), jnp.ones(3))] * 10:
    params, state, loss = step(params, state, x, y)

params = network(random.key(1))
optimizer = optax.sgd(0.1)
state = optimizer.init(params)
for turn in range(40):
    if turn == 20:
        optimizer = optax.sgd(0.01)
        state = optimizer.init(params)
    loss, grads = jax.value_and_grad(error)(params, jnp.ones((3, 4)), jnp.ones(3))
    updates, state = optimizer.update(grads, state, params)
    params = optax.apply_updates(params, updates)
