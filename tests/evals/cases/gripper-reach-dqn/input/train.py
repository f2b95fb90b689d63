import random
import statistics

import torch

from agent import DoubleQ, Memory
from reach import ReachEnv

EPISODES = 360


def main():
    torch.manual_seed(0)
    coin = random.Random(0)
    env, agent, memory = ReachEnv(5), DoubleQ(), Memory(10000, 1)
    steps = 0
    window, success, losses, qs = [], [], [], []
    print("episode,env_steps,eps,return_mean,success,td_loss,q_mean")
    for ep in range(1, EPISODES + 1):
        eps = max(0.05, 1.0 - ep / 150)
        obs, total = env.reset(), 0.0
        while True:
            action = coin.randrange(4) if coin.random() < eps else agent.act(obs)
            nxt, reward, reached, cut = env.step(action)
            memory.push(obs, action, reward, nxt, float(reached))
            obs = nxt
            total += reward
            steps += 1
            if len(memory) > 500 and steps % 2 == 0:
                l, q = agent.learn(memory.sample(64))
                losses.append(l)
                qs.append(q)
            if reached or cut:
                break
        window.append(total)
        success.append(float(reached))
        if ep % 30 == 0:
            m = statistics.fmean
            print(f"{ep},{steps},{eps:.2f},{m(window):.3f},{m(success):.2f},{m(losses or [0]):.4f},{m(qs or [0]):.3f}", flush=True)
            window, success, losses, qs = [], [], [], []


if __name__ == "__main__":
    main()
