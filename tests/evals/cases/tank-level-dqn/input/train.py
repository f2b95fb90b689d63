import collections
import logging
import random
import sys

import numpy as np
import torch
from torch import nn

from tank import TankLevel

logging.basicConfig(stream=sys.stdout, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", level=logging.INFO)


def mlp():
    return nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3))


class Learner:
    def __init__(self):
        self.q, self.q_frozen = mlp(), mlp()
        self.sync()
        for p in self.q_frozen.parameters():
            p.requires_grad_(False)
        self.opt = torch.optim.Adam(self.q.parameters(), lr=1e-3)
        self.updates = 0

    def sync(self):
        self.q_frozen.load_state_dict(self.q.state_dict())

    def update(self, rows, gamma=0.97):
        s, a, r, n, d = (torch.as_tensor(np.array(c)) for c in zip(*rows))
        with torch.no_grad():
            goal = r.float() + gamma * self.q_frozen(n).amax(1) * (~d).float()
        now = self.q(s).gather(1, a[:, None]).squeeze(1)
        loss = nn.functional.mse_loss(now, goal)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.q.parameters(), 1.0)
        self.opt.step()
        self.updates += 1
        if self.updates % 250 == 0:
            self.sync()
        return loss.item(), now.mean().item()


def main():
    torch.manual_seed(2)
    rnd = random.Random(2)
    env, agent = TankLevel(9), Learner()
    replay = collections.deque(maxlen=8000)
    hist = collections.defaultdict(list)
    t = 0
    for episode in range(1, 241):
        s, ret = env.reset(), 0.0
        eps = max(0.05, 1 - episode / 100)
        done = cut = False
        while not (done or cut):
            if rnd.random() < eps:
                a = rnd.randrange(3)
            else:
                with torch.no_grad():
                    a = agent.q(torch.from_numpy(s)).argmax().item()
            n, r, done, cut = env.step(a)
            replay.append((s, a, r, n, done))
            s, ret, t = n, ret + r, t + 1
            if len(replay) >= 400 and t % 2 == 0:
                l, q = agent.update(rnd.sample(replay, 48))
                hist["loss"].append(l)
                hist["q"].append(q)
        hist["ret"].append(ret)
        if episode % 12 == 0:
            avg = {k: np.mean(v) for k, v in hist.items()}
            peak = max(hist["loss"], default=0.0)
            logging.info("ep %d eps %.2f return %.1f td %.3f (peak %.2f) q %.2f", episode, eps, avg["ret"], avg.get("loss", 0), peak, avg.get("q", 0))
            hist.clear()


if __name__ == "__main__":
    main()
