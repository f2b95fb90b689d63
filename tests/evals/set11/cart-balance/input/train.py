"""DQN on cart-pole; settings in config.json."""
import json

import numpy as np
import torch

from agent import Agent, Replay
from env import CartPole


def greedy_return(agent, seed, episodes=1):
    env = CartPole(np.random.default_rng(seed))
    total = 0.0
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            obs, r, fell, cut = env.step(agent.act(obs))
            total += r
            done = fell or cut
    return total / episodes


def main():
    cfg = json.load(open("config.json"))
    torch.manual_seed(cfg["seed"])
    rng = np.random.default_rng(cfg["seed"])
    env = CartPole(rng)
    agent = Agent(4, 2, cfg)
    memory = Replay(cfg["replay"], 4, rng)
    print(json.dumps(cfg))
    obs, returns, ret, losses, qs = env.reset(), [], 0.0, [], []
    for step in range(1, cfg["steps"] + 1):
        eps = max(cfg["eps_end"], cfg["eps_start"] - (cfg["eps_start"] - cfg["eps_end"]) * step / cfg["eps_steps"])
        action = int(rng.integers(2)) if rng.random() < eps else agent.act(obs)
        nxt, r, fell, cut = env.step(action)
        memory.add(obs, action, r, nxt, float(fell))
        obs, ret = nxt, ret + r
        if fell or cut:
            returns.append(ret)
            obs, ret = env.reset(), 0.0
        if step >= cfg["warmup"]:
            loss, q = agent.update(memory.batch(cfg["batch"]))
            losses.append(loss)
            qs.append(q)
        if step % cfg["report_every"] == 0:
            print(f"step {step:5d}  eps {eps:.2f}  return {np.mean(returns[-20:]):6.1f}  greedy {greedy_return(agent, 100):6.1f}  "
                  f"td loss {np.mean(losses):10.3f}  mean q {np.mean(qs):8.2f}", flush=True)
            losses.clear(), qs.clear()


if __name__ == "__main__":
    main()
