"""Elevator dispatching, double DQN in plain JAX + optax."""
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

OBS, ACT, HID = 10, 4, 64
GAMMA, SYNC_EVERY, BATCH = 0.95, 100, 128
tx = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(1e-3))


def init_mlp(key, sizes):
    params = []
    for k, (a, b) in zip(jax.random.split(key, len(sizes) - 1), zip(sizes[:-1], sizes[1:])):
        params.append({"w": jax.random.normal(k, (a, b)) * jnp.sqrt(2.0 / a), "b": jnp.zeros(b)})
    return params


def q_values(params, obs):
    h = obs
    for layer in params[:-1]:
        h = jax.nn.relu(h @ layer["w"] + layer["b"])
    return h @ params[-1]["w"] + params[-1]["b"]


def td_error(params, target, batch):
    obs, act, rew, nxt = batch
    q = jnp.take_along_axis(q_values(params, obs), act[:, None], axis=1)[:, 0]
    best = jnp.argmax(q_values(params, nxt), axis=1)
    boot = jnp.take_along_axis(q_values(target, nxt), best[:, None], axis=1)[:, 0]
    return optax.huber_loss(q, rew + GAMMA * jax.lax.stop_gradient(boot)).mean()


@partial(jax.jit, donate_argnums=(0, 1))
def update(params, opt_state, target, batch):
    value, grads = jax.value_and_grad(td_error)(params, target, batch)
    deltas, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, deltas), opt_state, value


class Shaft:
    """Vectorised toy building, 32 shafts."""

    def __init__(self, n=32, seed=0):
        self.rng = np.random.default_rng(seed)
        self.mat = self.rng.normal(size=(ACT, OBS, OBS)) / np.sqrt(OBS)
        self.good = self.rng.normal(size=(OBS, ACT))
        self.s = self.rng.normal(size=(n, OBS))

    def step(self, a):
        r = np.tanh((self.s @ self.good)[np.arange(len(a)), a])
        self.s = 0.9 * np.einsum("nij,nj->ni", self.mat[a], self.s) + 0.4 * self.rng.normal(size=self.s.shape)
        return r, self.s


class Memory:
    def __init__(self, cap=20_000):
        self.cap, self.rows = cap, []

    def add(self, *row):
        self.rows.extend(zip(*row))
        self.rows = self.rows[-self.cap:]

    def sample(self, rng, n):
        pick = [self.rows[i] for i in rng.integers(0, len(self.rows), n)]
        o, a, r, x = map(np.asarray, zip(*pick))
        return (jnp.asarray(o, jnp.float32), jnp.asarray(a), jnp.asarray(r, jnp.float32), jnp.asarray(x, jnp.float32))


def main():
    rng = np.random.default_rng(7)
    params = init_mlp(jax.random.key(0), (OBS, HID, HID, ACT))
    target = jax.tree.map(jnp.copy, params)
    opt_state = tx.init(params)
    env, memory = Shaft(), Memory()
    forward = jax.jit(q_values)
    obs, avg = env.s, 0.0
    for step in range(401):
        eps = max(0.05, 1 - step / 200)
        act = np.asarray(forward(params, jnp.asarray(obs, jnp.float32))).argmax(1)
        act = np.where(rng.random(len(act)) < eps, rng.integers(0, ACT, len(act)), act)
        rew, nxt = env.step(act)
        memory.add(obs, act, rew, nxt)
        obs = nxt
        avg += 0.02 * (rew.mean() - avg)
        if len(memory.rows) >= 512:
            params, opt_state, value = update(params, opt_state, target, memory.sample(rng, BATCH))
            if step % SYNC_EVERY == 0:
                target = params
                print(f"step {step:4d} target network synced", flush=True)
            if step % 50 == 0:
                print(f"step {step:4d} eps {eps:.2f} reward {avg:+.3f} td {float(value):.4f}", flush=True)
    print("finished")


if __name__ == "__main__":
    main()
