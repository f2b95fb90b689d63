"""Double DQN for a picker robot on a 7x7 floor: fetch the tote (+0), bring it to the gate (+1). Sparse reward."""
import random
from collections import deque
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, LIMIT = 7, 60
GATE = (0, 3)
WALLS = {(3, 1), (3, 2), (3, 4), (3, 5)}
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


class Floor:
    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        free = [(r, c) for r in range(4, SIZE) for c in range(SIZE)]
        self.pos, self.tote = self.rng.sample(free, 2)
        self.has, self.t = False, 0
        return self.obs()

    def obs(self):
        o = np.zeros((4, SIZE), np.float32)
        o[0, self.pos[0]] = o[1, self.pos[1]] = 1
        tgt = GATE if self.has else self.tote
        o[2, tgt[0]] = o[3, tgt[1]] = 1
        return np.append(o.ravel(), np.float32(self.has))

    def step(self, a):
        r, c = self.pos[0] + MOVES[a][0], self.pos[1] + MOVES[a][1]
        if 0 <= r < SIZE and 0 <= c < SIZE and (r, c) not in WALLS:
            self.pos = (r, c)
        self.t += 1
        if not self.has and self.pos == self.tote:
            self.has = True
        won = self.has and self.pos == GATE
        return self.obs(), float(won), won, self.t >= LIMIT  # reward, terminated, truncated


def net():
    return nn.Sequential(nn.Linear(4 * SIZE + 1, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 4))


def greedy_success(q, n=60):
    env, ok = Floor(random.Random(1234)), 0
    for _ in range(n):
        o, done = env.reset(), False
        while not done:
            with torch.no_grad():
                o, r, term, trunc = env.step(int(q(torch.from_numpy(o)).argmax()))
            done = term or trunc
            ok += term
    return ok / n


def main():
    seed = 4
    rng = random.Random(seed)
    torch.manual_seed(seed)
    env, q, target = Floor(rng), net(), net()
    target.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), lr=7e-4)
    buf, total, gamma = deque(maxlen=20000), 15000, 0.96
    obs, wins, losses = env.reset(), deque(maxlen=50), deque(maxlen=200)
    print("step,epsilon,win_rate_50,greedy_success,td_loss,mean_max_q")
    for step in range(1, total + 1):
        eps = max(0.05, 1 - step / 9000)
        a = rng.randrange(4) if rng.random() < eps else int(q(torch.from_numpy(obs)).argmax())
        nxt, r, term, trunc = env.step(a)
        buf.append((obs, a, r, nxt, float(term)))
        obs = nxt
        if term or trunc:
            wins.append(float(term))
            obs = env.reset()
        if step > 1000 and step % 3 == 0:
            batch = rng.sample(buf, 64)
            o, aa, rr, n2, d = (torch.from_numpy(np.array(z)) for z in zip(*batch))
            with torch.no_grad():
                best = q(n2).argmax(1, keepdim=True)
                y = rr.float() + gamma * (1 - d.float()) * target(n2).gather(1, best).squeeze(1)
            pred = q(o).gather(1, aa[:, None]).squeeze(1)
            loss = F.smooth_l1_loss(pred, y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(q.parameters(), 10.0)
            opt.step()
            losses.append(loss.item())
            with torch.no_grad():
                for p, s in zip(target.parameters(), q.parameters()):
                    p.lerp_(s, 0.01)
        if step % 1000 == 0:
            mq = q(torch.from_numpy(np.array([b[0] for b in rng.sample(buf, 256)]))).max(1).values.mean().item()
            print(f"{step},{eps:.2f},{np.mean(wins) if wins else 0:.2f},{greedy_success(q):.2f},{np.mean(losses) if losses else float('nan'):.6f},{mq:.4f}", flush=True)


if __name__ == "__main__":
    main()
