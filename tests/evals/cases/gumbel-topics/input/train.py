"""Discrete topic assignment with a straight-through Gumbel-softmax, temperature annealed per update."""
import functools
import math
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn


class HParams(NamedTuple):
    vocab: int = 120
    topics: int = 8
    width: int = 64
    batch: int = 64
    updates: int = 10
    report: int = 2
    t_start: float = 2.0
    t_end: float = 0.3
    lr: float = 0.02


class TopicNet(nn.Module):
    hp: HParams

    @nn.compact
    def __call__(self, counts, key, temperature, hard: bool = False):
        x = nn.relu(nn.Dense(self.hp.width)(jnp.log1p(counts)))
        logits = nn.Dense(self.hp.topics)(x)
        gumbel = jax.random.gumbel(key, logits.shape)
        soft = jax.nn.softmax((logits + gumbel) / temperature)
        if temperature < 0.5:  # straight-through towards the end
            one_hot = jax.nn.one_hot(soft.argmax(-1), self.hp.topics)
            soft = soft + jax.lax.stop_gradient(one_hot - soft)
        words = nn.Dense(self.hp.vocab, use_bias=False)(soft)
        return jax.nn.log_softmax(words), logits


def documents(n, hp, seed):
    rng = np.random.default_rng(seed)
    topic_word = np.random.default_rng(5).dirichlet(np.full(hp.vocab, 0.05), hp.topics)
    z = rng.integers(0, hp.topics, n)
    return np.stack([rng.multinomial(60, topic_word[k]) for k in z]).astype(np.float32)


def temperature_at(u, hp):
    return hp.t_start * math.exp(math.log(hp.t_end / hp.t_start) * u / hp.updates)


def make_update(net, tx):
    def nll(params, counts, key, temperature):
        logp, _ = net.apply(params, counts, key, temperature)
        return -(counts * logp).sum(-1).mean() / counts.sum(-1).mean()

    @functools.partial(jax.jit, static_argnames=("temperature",))
    def update(params, opt_state, counts, key, temperature):
        value, grads = jax.value_and_grad(nll)(params, counts, key, temperature)
        delta, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, delta), opt_state, value

    return update


def main():
    hp = HParams()
    net, tx = TopicNet(hp), optax.adam(hp.lr)
    docs = documents(2000, hp, 1)
    key = jax.random.key(0, impl="rbg")
    params = net.init(key, jnp.zeros((1, hp.vocab)), key, 1.0)
    opt_state = tx.init(params)
    update = make_update(net, tx)
    rng = np.random.default_rng(2)
    print(f"{sum(x.size for x in jax.tree.leaves(params))} parameters on {jax.devices()[0].platform}")
    mark = time.perf_counter()
    for u in range(1, hp.updates + 1):
        counts = docs[rng.integers(0, len(docs), hp.batch)]
        key, k = jax.random.split(key)
        params, opt_state, value = update(params, opt_state, counts, k, temperature=temperature_at(u, hp))
        if u % hp.report == 0:
            value.block_until_ready()
            now = time.perf_counter()
            print(f"update {u:3d} nll/word {float(value):.4f} temp {temperature_at(u, hp):.3f} {1e3 * (now - mark) / hp.report:.1f} ms/update", flush=True)
            mark = now


if __name__ == "__main__":
    main()
