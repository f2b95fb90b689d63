"""Q-learning for a storage rack: move a shuttle to the shelf that was called.  JAX, target network, replay."""
import csv

import jax
import jax.numpy as jnp
import numpy as np
import optax

SHELVES, LIMIT, GAMMA = 7, 20, 0.95


class Rack:
    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.at, self.call = self.rng.integers(SHELVES), self.rng.integers(SHELVES)
        self.t = 0
        return self.obs()

    def obs(self):
        o = np.zeros(2 * SHELVES, np.float32)
        o[self.at] = o[SHELVES + self.call] = 1
        return o

    def step(self, a):
        """0 down, 1 up, 2 hand over"""
        self.t += 1
        if a == 2:
            return self.obs(), (5.0 if self.at == self.call else -2.0), True, False
        self.at = int(np.clip(self.at + (1 if a else -1), 0, SHELVES - 1))
        return self.obs(), -0.1, False, self.t >= LIMIT


def init(key, sizes=(2 * SHELVES, 64, 64, 3)):
    ks = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (i, o)) * jnp.sqrt(2 / i), jnp.zeros(o)) for k, i, o in zip(ks, sizes, sizes[1:])]


def q(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    return x @ params[-1][0] + params[-1][1]


def td_loss(params, target, s, a, r, s2, end):
    best = q(params, s2).argmax(-1)  # double Q
    boot = jnp.take_along_axis(q(target, s2), best[:, None], 1)[:, 0]
    y = jax.lax.stop_gradient(r + GAMMA * (1 - end) * boot)
    return optax.huber_loss(jnp.take_along_axis(q(params, s), a[:, None], 1)[:, 0], y).mean()


def main():
    rng = np.random.default_rng(3)
    env = Rack(rng)
    params = init(jax.random.key(3))
    target = params
    tx = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(1e-3))
    state = tx.init(params)
    act = jax.jit(lambda p, s: q(p, s).argmax())

    @jax.jit
    def step(params, target, state, batch):
        loss, g = jax.value_and_grad(td_loss)(params, target, *batch)
        up, state = tx.update(g, state, params)
        return optax.apply_updates(params, up), state, loss

    buf, returns, losses, rows = [], [], [], []
    s, total = env.reset(), 0.0
    for n in range(1, 9001):
        eps = max(0.05, 1 - n / 5000)
        a = int(rng.integers(3)) if rng.random() < eps else int(act(params, s))
        s2, r, end, cut = env.step(a)
        buf.append((s, a, r, s2, float(end)))  # a cut by the time limit still bootstraps
        buf = buf[-5000:] if len(buf) > 6000 else buf
        total += r
        s = s2
        if end or cut:
            returns.append(total)
            s, total = env.reset(), 0.0
        if n > 500:
            pick = rng.integers(len(buf), size=64)
            cols = [np.stack([buf[i][k] for i in pick]) for k in range(5)]
            params, state, loss = step(params, target, state, (cols[0], cols[1], cols[2].astype(np.float32), cols[3], cols[4].astype(np.float32)))
            losses.append(float(loss))
            if n % 250 == 0:
                target = params
        if n % 500 == 0:
            row = [n, eps, np.mean(returns[-60:]), np.mean(losses[-200:]) if losses else float("nan")]
            rows.append(row)
            print("step {:5d} eps {:.2f} return {:+.2f} td_loss {:.4f}".format(*row))
    with open("progress.csv", "w", newline="") as f:
        csv.writer(f).writerows([["step", "eps", "return", "td_loss"], *rows])


if __name__ == "__main__":
    main()
