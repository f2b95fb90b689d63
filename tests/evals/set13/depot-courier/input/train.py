import sys
from collections import defaultdict

import numpy as np
import yaml

from depot_env import DepotEnv


class QAgent:
    def __init__(self, n_actions, gamma, alpha, q_init, rng):
        self.q = defaultdict(lambda: np.full(n_actions, q_init))
        self.gamma, self.alpha, self.rng = gamma, alpha, rng
        self.n_actions = n_actions

    def act(self, state, eps):
        if self.rng.random() < eps:
            return int(self.rng.integers(self.n_actions))
        values = self.q[state]
        return int(self.rng.choice(np.flatnonzero(values == values.max())))

    def learn(self, s, a, r, s2, terminal):
        target = r if terminal else r + self.gamma * self.q[s2].max()
        td = target - self.q[s][a]
        self.q[s][a] += self.alpha * td
        return abs(td)


def main(path="courier.yaml"):
    with open(path) as fh:
        cfg = yaml.safe_load(fh)
    ag, run = cfg["agent"], cfg["run"]
    rng = np.random.default_rng(run["seed"])
    env = DepotEnv(cfg["map"], **cfg["env"])
    agent = QAgent(env.n_actions, ag["gamma"], ag["alpha"], ag["q_init"], rng)
    returns, loads, tds = [], [], []
    for ep in range(1, run["episodes"] + 1):
        frac = min(1.0, ep / ag["eps_episodes"])
        eps = ag["eps_start"] + frac * (ag["eps_end"] - ag["eps_start"])
        s, total, done, cut = env.reset(), 0.0, False, False
        while not (done or cut):
            a = agent.act(s, eps)
            s2, r, done, cut = env.step(a)
            tds.append(agent.learn(s, a, r, s2, done))
            s, total = s2, total + r
        returns.append(total)
        loads.append(env.loaded)
        if ep % run["report"] == 0:
            k = run["report"]
            print(f"ep {ep:5d} eps {eps:.2f} return {np.mean(returns[-k:]):.3f} "
                  f"pickup {np.mean(loads[-k:]):.3f} |td| {np.mean(tds):.5f} states {len(agent.q)}", flush=True)
            tds.clear()


if __name__ == "__main__":
    main(*sys.argv[1:])
