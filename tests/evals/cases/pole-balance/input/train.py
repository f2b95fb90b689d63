"""Actor-critic on a small pole balancing simulation (no gym)."""
import math
import random
import torch
import torch.nn as nn
import torch.nn.functional as F


class Pole:
    """Cart-pole physics, at most 120 steps."""

    def __init__(self, rnd):
        self.rnd = rnd

    def reset(self):
        self.s = [self.rnd.uniform(-0.05, 0.05) for _ in range(4)]
        self.t = 0
        return list(self.s)

    def step(self, action):
        x, xd, th, thd = self.s
        f = 10.0 if action else -10.0
        tmp = (f + 0.05 * thd ** 2 * math.sin(th)) / 1.1
        thacc = (9.8 * math.sin(th) - math.cos(th) * tmp) / (0.5 * (4 / 3 - 0.1 * math.cos(th) ** 2 / 1.1))
        xacc = tmp - 0.05 * thacc * math.cos(th) / 1.1
        self.s = [x + 0.02 * xd, xd + 0.02 * xacc, th + 0.02 * thd, thd + 0.02 * thacc]
        self.t += 1
        fallen = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21
        return list(self.s), 1.0, fallen or self.t >= 120


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.pi, self.v = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, s):
        h = self.body(s)
        return self.pi(h), self.v(h).squeeze(-1)


def rollout(envs, net):
    """All environments in lock step; a finished one is masked out."""
    obs = [e.reset() for e in envs]
    alive = [True] * len(envs)
    S, A, R, M = [], [], [], []
    while any(alive):
        s = torch.tensor(obs)
        with torch.no_grad():
            a = torch.multinomial(F.softmax(net(s)[0], -1), 1).squeeze(1)
        S.append(s), A.append(a), M.append(torch.tensor(alive))
        r = []
        for i, e in enumerate(envs):
            if not alive[i]:
                r.append(0.0)
                continue
            obs[i], ri, done = e.step(int(a[i]))
            r.append(ri)
            alive[i] = not done
        R.append(torch.tensor(r))
    return torch.stack(S), torch.stack(A), torch.stack(R), torch.stack(M)


def main(updates=90, n_env=8, gamma=0.98):
    torch.manual_seed(1)
    envs = [Pole(random.Random(i)) for i in range(n_env)]
    net = ActorCritic()
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for u in range(1, updates + 1):
        S, A, R, M = rollout(envs, net)
        G, ret = torch.zeros_like(R), torch.zeros(n_env)
        for t in reversed(range(len(R))):
            ret = R[t] + gamma * ret
            G[t] = ret
        logits, V = net(S)
        logp = F.log_softmax(logits, -1)
        adv = (G - V.detach())[M]
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
        pg = -(logp.gather(-1, A[..., None]).squeeze(-1)[M] * adv).mean()
        vf = F.smooth_l1_loss(V[M], G[M])
        H = -(logp.exp() * logp).sum(-1)[M].mean()
        opt.zero_grad()
        (pg + 0.5 * vf - 0.01 * H).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
        if u % 3 == 0:
            ep = R.sum(0)
            print(f"update {u:>3} | ep_ret {ep.mean():7.2f} (min {ep.min():.0f} max {ep.max():.0f}) | pg {pg.item():+.4f} "
                  f"| vf {vf.item():.3f} | H {H.item():.3f}")


if __name__ == "__main__":
    main()
