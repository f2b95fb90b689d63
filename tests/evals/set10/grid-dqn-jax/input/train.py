"""Double DQN with replay on a windy grid, JAX and optax, environment in numpy."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

SIZE = 7
GOAL = (6, 6)
PITS = {(2, 2), (2, 4), (4, 1), (4, 5), (5, 3), (3, 6)}
MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])
N_ENV = 16
STEPS = 5000
GAMMA = 0.95
BUFFER = 100000
BATCH = 256
LEARN_START = 100
TARGET_EVERY = 100
MAX_LEN = 50


class WindyGrid:
    """N_ENV copies; +1 at the goal, -1 in a pit, -0.01 a move, wind turns one move in ten"""

    def __init__(self, n, seed):
        self.n, self.rng = n, np.random.default_rng(seed)
        self.pos = np.zeros((n, 2), int)
        self.age = np.zeros(n, int)
        self.reset(np.ones(n, bool))

    def reset(self, which):
        for i in np.flatnonzero(which):
            while True:
                p = tuple(self.rng.integers(0, SIZE, 2))
                if p != GOAL and p not in PITS:
                    break
            self.pos[i], self.age[i] = p, 0

    def observe(self):
        return self.pos[:, 0] * SIZE + self.pos[:, 1]

    def step(self, action):
        wind = self.rng.random(self.n) < 0.1
        action = np.where(wind, self.rng.integers(0, 4, self.n), action)
        self.pos = np.clip(self.pos + MOVES[action], 0, SIZE - 1)
        self.age += 1
        goal = (self.pos == GOAL).all(1)
        pit = np.array([tuple(p) in PITS for p in self.pos])
        reward = np.where(goal, 1.0, np.where(pit, -1.0, -0.01))
        done = goal | pit
        truncated = ~done & (self.age >= MAX_LEN)
        return self.observe(), reward, done, truncated


def init(key, sizes=(SIZE * SIZE, 64, 64, 4)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (a, b)) * np.sqrt(2 / a), jnp.zeros(b)) for k, a, b in zip(keys, sizes[:-1], sizes[1:])]


def q_values(params, cell):
    h = jax.nn.one_hot(cell, SIZE * SIZE)
    for w, b in params[:-1]:
        h = jax.nn.relu(h @ w + b)
    w, b = params[-1]
    return h @ w + b


opt = optax.chain(optax.clip_by_global_norm(5.0), optax.adam(5e-4))


@jax.jit
def learn(params, target, opt_state, s, a, r, s2, done):
    best = q_values(params, s2).argmax(-1)
    next_q = jnp.take_along_axis(q_values(target, s2), best[:, None], 1)[:, 0]
    y = jax.lax.stop_gradient(r + GAMMA * (1 - done) * next_q)

    def loss_fn(p):
        q = jnp.take_along_axis(q_values(p, s), a[:, None], 1)[:, 0]
        return optax.huber_loss(q, y).mean(), q.mean()

    (loss, q), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
    updates, opt_state = opt.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss, q


greedy = jax.jit(lambda p, s: q_values(p, s).argmax(-1))


def play(params, episodes=160):
    env = WindyGrid(episodes, seed=1234)
    alive, total, goals = np.ones(episodes, bool), np.zeros(episodes), 0
    for _ in range(MAX_LEN):
        s, r, done, trunc = env.step(np.asarray(greedy(params, env.observe())))
        total += r * alive
        goals += int((alive & done & (r > 0)).sum())
        alive &= ~(done | trunc)
    return total.mean(), goals / episodes


def main():
    rng = np.random.default_rng(3)
    params = init(jax.random.PRNGKey(3))
    target, opt_state = params, opt.init(params)
    env = WindyGrid(N_ENV, seed=3)
    mem = dict(s=np.zeros(BUFFER, np.int32), a=np.zeros(BUFFER, np.int32), r=np.zeros(BUFFER, np.float32),
               s2=np.zeros(BUFFER, np.int32), d=np.zeros(BUFFER, np.float32))
    filled, head = 0, 0
    losses, qs, t0 = [], [], time.time()
    s = env.observe()
    for step in range(1, STEPS + 1):
        eps = max(0.15, 1.0 - step / 2500)
        a = np.where(rng.random(N_ENV) < eps, rng.integers(0, 4, N_ENV), np.asarray(greedy(params, s)))
        s2, r, done, trunc = env.step(a)
        slots = (head + np.arange(N_ENV)) % BUFFER
        # a truncated episode is not terminal: its last state still bootstraps
        for k, v in zip(("s", "a", "r", "s2", "d"), (s, a, r, s2, done)):
            mem[k][slots] = v
        head, filled = (head + N_ENV) % BUFFER, min(BUFFER, filled + N_ENV)
        env.reset(done | trunc)
        s = env.observe()
        if step >= LEARN_START:
            i = rng.integers(0, filled, BATCH)
            params, opt_state, loss, q = learn(params, target, opt_state, mem["s"][i], mem["a"][i], mem["r"][i], mem["s2"][i], mem["d"][i])
            losses.append(loss)
            qs.append(q)
        if step % TARGET_EVERY == 0:
            target = params
        if step % 500 == 0:
            score, goal_rate = play(params)
            print(f"step {step:5d} eps {eps:.2f} td loss {np.mean(losses[-500:]):.5f} mean q {np.mean(qs[-500:]):+.3f} "
                  f"greedy return {score:+.3f} goals {goal_rate:.2f} [{time.time() - t0:.0f}s]", flush=True)


if __name__ == "__main__":
    main()
