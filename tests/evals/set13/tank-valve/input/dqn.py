import argparse
import copy

import numpy as np
import torch
from torch import nn

from memory import Memory
from tank import Tank


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--episodes", type=int, default=120)
    p.add_argument("--gamma", type=float, default=0.93)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--sync", type=int, default=100)
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    rng = np.random.default_rng(a.seed)
    env, memory = Tank(a.seed), Memory(20000, a.seed)
    q = nn.Sequential(nn.Linear(Tank.n_obs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, Tank.n_actions))
    target = copy.deepcopy(q)
    opt = torch.optim.Adam(q.parameters(), lr=a.lr)
    returns, losses, steps = [], [], 0
    for episode in range(1, a.episodes + 1):
        eps = max(0.05, 1 - episode / 60)
        obs, total, over = env.reset(), 0.0, False
        while not over:
            with torch.no_grad():
                action = int(q(torch.from_numpy(obs)).argmax()) if rng.random() > eps else int(rng.integers(Tank.n_actions))
            nxt, reward, over = env.step(action)
            memory.push(obs, action, reward, nxt)
            obs, total, steps = nxt, total + reward, steps + 1
            if len(memory.items) < 500:
                continue
            s, u, r, s2 = memory.draw(a.batch)
            with torch.no_grad():
                # the horizon is a time limit, so every step bootstraps
                goal = r + a.gamma * target(s2).max(1).values
            loss = nn.functional.smooth_l1_loss(q(s).gather(1, u[:, None]).squeeze(1), goal)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
            if steps % a.sync == 0:
                target.load_state_dict(q.state_dict())
        returns.append(total)
        if episode % 10 == 0:
            print(f"episode={episode} eps={eps:.2f} return={np.mean(returns[-10:]):.2f} loss={np.mean(losses[-600:] or [0]):.4f}", flush=True)


if __name__ == "__main__":
    main()
