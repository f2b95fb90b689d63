import copy
import random
import time
from collections import deque

import numpy as np
import torch
import torch.nn as nn

from env import TwoTank

HP = {"episodes": 120, "gamma": 0.95, "batch": 64, "lr": 2e-3, "buffer": 20_000, "warmup": 500,
      "sync": 200, "eps": (1.0, 0.05, 2500), "double": True}


class Replay:
    def __init__(self, cap):
        self.q = deque(maxlen=cap)

    def push(self, *tr):
        self.q.append(tr)

    def sample(self, n):
        s, a, r, s2, d = zip(*random.sample(self.q, n))
        f = lambda v: torch.as_tensor(np.asarray(v, dtype=np.float32))
        return f(s), torch.tensor(a), f(r), f(s2), f(d)

    def __len__(self):
        return len(self.q)


def qnet(env):
    return nn.Sequential(nn.Linear(env.n_obs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, env.n_act))


def eps_at(step):
    hi, lo, span = HP["eps"]
    return max(lo, hi - (hi - lo) * step / span)


def learn(online, target, opt, batch):
    s, a, r, s2, d = batch
    q = online(s).gather(1, a[:, None]).squeeze(1)
    with torch.no_grad():
        if HP["double"]:
            nxt = target(s2).gather(1, online(s2).argmax(1, keepdim=True)).squeeze(1)
        else:
            nxt = target(s2).max(1).values
        y = r + HP["gamma"] * nxt          # time limit only, never terminal: keep bootstrapping
    loss = nn.functional.smooth_l1_loss(q, y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(online.parameters(), 10.0)
    opt.step()
    return loss.item(), q.mean().item()


def evaluate(online, n=10):
    env, tot = TwoTank(seed=999), 0.0
    for _ in range(n):
        s, done = env.reset(), False
        while not done:
            with torch.no_grad():
                a = online(torch.from_numpy(s)).argmax().item()
            s, r, done = env.step(a)
            tot += r
    return tot / n


def main():
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    env = TwoTank(seed=1)
    online = qnet(env)
    target = copy.deepcopy(online)
    opt = torch.optim.Adam(online.parameters(), lr=HP["lr"])
    mem, step, t0 = Replay(HP["buffer"]), 0, time.time()
    losses, qs, rets = deque(maxlen=500), deque(maxlen=500), deque(maxlen=10)
    for ep in range(1, HP["episodes"] + 1):
        s, done, G = env.reset(), False, 0.0
        while not done:
            if random.random() < eps_at(step):
                a = random.randrange(env.n_act)
            else:
                with torch.no_grad():
                    a = online(torch.from_numpy(s)).argmax().item()
            s2, r, done = env.step(a)
            mem.push(s, a, r, s2, float(done))
            s, G, step = s2, G + r, step + 1
            if len(mem) >= HP["warmup"]:
                l, q = learn(online, target, opt, mem.sample(HP["batch"]))
                losses.append(l), qs.append(q)
            if step % HP["sync"] == 0:
                target.load_state_dict(online.state_dict())
        rets.append(G)
        if ep % 10 == 0:
            print(f"[ep {ep:03d}] eps={eps_at(step):.2f} replay={len(mem)} td={np.mean(losses) if losses else 0:.4f} "
                  f"q={np.mean(qs) if qs else 0:.2f} return(train)={np.mean(rets):.1f} return(greedy)={evaluate(online):.1f}/60")


if __name__ == "__main__":
    main()
