"""Double DQN with a replay buffer on 'catch': move the paddle under the falling ball, 4 balls per episode."""
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, COLS, BALLS = 7, 6, 4


class Catch:
    def __init__(self, rng):
        self.rng = rng

    def _obs(self):
        return np.array([self.ball[0] / ROWS, self.ball[1] / COLS, self.pad / COLS, (self.ball[1] - self.pad) / COLS], np.float32)

    def reset(self):
        self.left, self.pad = BALLS, self.rng.randrange(COLS)
        self.ball = [0, self.rng.randrange(COLS)]
        return self._obs()

    def step(self, a):
        self.pad = min(COLS - 1, max(0, self.pad + a - 1))
        self.ball[0] += 1
        r, done = 0.0, False
        if self.ball[0] == ROWS - 1:
            r = 1.0 if self.ball[1] == self.pad else -1.0
            self.left -= 1
            done = self.left == 0
            self.ball = [0, self.rng.randrange(COLS)]
        return self._obs(), r, done


class Replay:
    def __init__(self, size):
        self.size, self.n, self.i = size, 0, 0
        self.s, self.s2 = np.zeros((size, 4), np.float32), np.zeros((size, 4), np.float32)
        self.a, self.r, self.d = np.zeros(size, np.int64), np.zeros(size, np.float32), np.zeros(size, np.float32)

    def add(self, s, a, r, s2, d):
        i = self.i
        self.s[i], self.a[i], self.r[i], self.s2[i], self.d[i] = s, a, r, s2, d
        self.i, self.n = (i + 1) % self.size, min(self.size, self.n + 1)

    def sample(self, k, gen):
        j = gen.integers(0, self.n, k)
        return [torch.from_numpy(v[j]) for v in (self.s, self.a, self.r, self.s2, self.d)]


def qnet():
    return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))


def greedy_score(net, episodes=30):
    env, tot = Catch(random.Random(555)), 0.0
    with torch.no_grad():
        for _ in range(episodes):
            s, done = env.reset(), False
            while not done:
                s, r, done = env.step(net(torch.from_numpy(s)).argmax().item())
                tot += r
    return tot / episodes


def main():
    torch.manual_seed(1)
    rng, gen = random.Random(1), np.random.default_rng(1)
    env, mem, net, tgt = Catch(rng), Replay(6000), qnet(), qnet()
    tgt.load_state_dict(net.state_dict())
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    step, rets, losses, qs = 0, [], [], []
    for ep in range(1, 201):
        s, done, ret = env.reset(), False, 0.0
        while not done:
            eps = max(0.05, 1 - step / 2500)
            with torch.no_grad():
                a = rng.randrange(3) if rng.random() < eps else net(torch.from_numpy(s)).argmax().item()
            s2, r, done = env.step(a)
            mem.add(s, a, r, s2, float(done))
            s, ret, step = s2, ret + r, step + 1
            if mem.n > 200:
                S, A, R, S2, D = mem.sample(64, gen)
                with torch.no_grad():
                    best = net(S2).argmax(1, keepdim=True)
                    y = R + 0.95 * (1 - D) * tgt(S2).gather(1, best).squeeze(1)
                q = net(S).gather(1, A[:, None]).squeeze(1)
                loss = F.mse_loss(q, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                losses.append(loss.item())
                qs.append(q.mean().item())
                with torch.no_grad():
                    for p, w in zip(tgt.parameters(), net.parameters()):
                        p.lerp_(w, 0.01)
        rets.append(ret)
        if ep % 20 == 0:
            print(f"ep {ep:3d} step {step:5d}  return {np.mean(rets[-20:]):+.2f}  greedy {greedy_score(net):+.2f}  "
                  f"loss {np.mean(losses[-400:]):.4f}  mean Q {np.mean(qs[-400:]):+.3f}", flush=True)


if __name__ == "__main__":
    main()
