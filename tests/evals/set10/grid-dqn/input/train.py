"""DQN on a small grid with pits. Settings in config.yaml."""
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import yaml

MAP = ["......G",
       ".##.#..",
       "...O...",
       ".O...#.",
       "...#..O",
       ".#...O.",
       "......."]
MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1)]


class PitGrid:
    def __init__(self, max_steps, rng):
        self.max_steps, self.rng = max_steps, rng
        self.n = len(MAP)
        self.free = [(r, c) for r in range(3, self.n) for c in range(self.n) if MAP[r][c] == "."]

    def obs(self):
        o = np.zeros(self.n * self.n, np.float32)
        o[self.pos[0] * self.n + self.pos[1]] = 1.0
        return o

    def reset(self):
        self.pos = self.rng.choice(self.free)
        self.t = 0
        return self.obs()

    def step(self, a):
        self.t += 1
        r, c = self.pos[0] + MOVES[a][0], self.pos[1] + MOVES[a][1]
        if 0 <= r < self.n and 0 <= c < self.n and MAP[r][c] != "#":
            self.pos = (r, c)
        cell = MAP[self.pos[0]][self.pos[1]]
        if cell == "G":
            return self.obs(), 1.0, True, False
        if cell == "O":
            return self.obs(), -1.0, True, False
        return self.obs(), -0.01, False, self.t >= self.max_steps


class QNet(nn.Module):
    def __init__(self, n_obs, n_act, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_obs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, n_act))

    def forward(self, x):
        return self.net(x)


class Epsilon:
    def __init__(self, eps_start, eps_end, eps_decay):
        self.a, self.b, self.n = eps_start, eps_end, eps_decay

    def __call__(self, k):
        return max(self.b, self.a - (self.a - self.b) * k / self.n)


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    seed, ag = cfg["run"]["seed"], cfg["agent"]
    rng = random.Random(seed)
    torch.manual_seed(seed)
    env = PitGrid(cfg["env"]["max_steps"], rng)
    q = QNet(env.n ** 2, 4, ag["hidden"])
    target = QNet(env.n ** 2, 4, ag["hidden"])
    target.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), lr=ag["lr"])
    memory = deque(maxlen=ag["buffer_size"])
    epsilon = Epsilon(**cfg["explore"])

    returns, lengths, losses, step = [], [], [], 0
    for episode in range(cfg["run"]["episodes"]):
        s, done, ret = env.reset(), False, 0.0
        eps = epsilon(episode)
        while not done:
            if rng.random() < eps:
                a = rng.randrange(4)
            else:
                with torch.no_grad():
                    a = q(torch.from_numpy(s)).argmax().item()
            s2, rew, terminal, truncated = env.step(a)
            memory.append((s, a, rew, s2, float(terminal)))
            s, ret, step = s2, ret + rew, step + 1
            done = terminal or truncated
            if len(memory) >= ag["learn_start"]:
                S, A, R, S2, D = zip(*rng.sample(memory, ag["batch_size"]))
                S, S2 = torch.from_numpy(np.stack(S)), torch.from_numpy(np.stack(S2))
                A, R, D = torch.tensor(A), torch.tensor(R), torch.tensor(D)
                with torch.no_grad():
                    y = R + ag["gamma"] * (1 - D) * target(S2).max(1).values
                loss = F.smooth_l1_loss(q(S).gather(1, A[:, None]).squeeze(1), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                losses.append(loss.item())
                if step % ag["target_every"] == 0:
                    target.load_state_dict(q.state_dict())
        returns.append(ret)
        lengths.append(env.t)
        if (episode + 1) % 20 == 0:
            print(f"ep {episode + 1:4d} | steps {step:5d} | return {np.mean(returns[-20:]):+.3f} | "
                  f"length {np.mean(lengths[-20:]):5.1f} | loss {np.mean(losses[-300:]) if losses else 0:.5f}")
    print(f"mean return of the last 50 episodes: {np.mean(returns[-50:]):+.3f}")


if __name__ == "__main__":
    main()
