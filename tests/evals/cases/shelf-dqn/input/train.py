import numpy as np
import torch

from agent import Agent
from replay import Replay
from warehouse import Aisle

torch.manual_seed(4)
rng = np.random.default_rng(4)
env, test_env = Aisle(seed=1), Aisle(seed=2)
agent, replay = Agent(env.bays, 3), Replay(env.bays)


def test_run(n=10):
    scores = []
    for _ in range(n):
        obs, total, over = test_env.reset(), 0.0, False
        while not over:
            obs, r, done, cut = test_env.step(agent.greedy(obs))
            total, over = total + r, done or cut
        scores.append(total)
    return np.mean(scores)


obs, solved, episodes = env.reset(), 0, 0
for t in range(1, 12001):
    eps = max(0.1, 1.0 - t / 6000)
    a = int(rng.integers(3)) if rng.random() < eps else agent.greedy(obs)
    nxt, r, done, cut = env.step(a)
    replay.push(obs, a, r, nxt, done)
    obs = nxt
    if done or cut:
        obs, episodes, solved = env.reset(), episodes + 1, solved + done
    if t >= 500 and t % 4 == 0:
        loss, q_mean, q_max = agent.learn(*replay.sample(64, rng))
    if t % 1000 == 0:
        print(f"t={t:6d} eps={eps:.2f} episodes={episodes} found={solved} td={loss:.5f} q_mean={q_mean:+.3f} q_max={q_max:+.3f} test_return={test_run():+.3f}")
        solved = episodes = 0
