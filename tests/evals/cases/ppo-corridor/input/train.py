"""PPO on a vectorised foraging grid (numpy environment, torch policy)."""
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

CFG = dict(n_env=32, horizon=32, updates=40, epochs=8, minibatches=4, gamma=0.97, lam=0.95,
           clip=0.2, ent=0.003, vf=0.5, lr=6e-3, seed=1)


class Forage:
    """Reach the berry on a 6x6 field, -0.02 per move, new berry after each pick."""

    N, MAX = 6, 40
    MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0], [0, 0]])

    def __init__(self, n, seed):
        self.rng, self.n = np.random.default_rng(seed), n
        self.pos = self.rng.integers(0, self.N, (n, 2))
        self.goal = self.rng.integers(0, self.N, (n, 2))
        self.t = self.rng.integers(0, self.MAX, n)
        self.ret = np.zeros(n)
        self.finished = []

    def obs(self):
        return torch.tensor(np.concatenate([self.pos, self.goal, self.goal - self.pos], 1) / self.N, dtype=torch.float32)

    def step(self, act):
        self.pos = np.clip(self.pos + self.MOVES[act], 0, self.N - 1)
        hit = (self.pos == self.goal).all(1)
        rew = np.where(hit, 1.0, -0.02)
        self.goal[hit] = self.rng.integers(0, self.N, (hit.sum(), 2))
        self.t += 1
        self.ret += rew
        done = self.t >= self.MAX
        self.finished += self.ret[done].tolist()
        self.ret[done], self.t[done] = 0.0, 0
        self.pos[done] = self.rng.integers(0, self.N, (done.sum(), 2))
        return rew.astype(np.float32), done


def net(out):
    return nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, out))


def advantages(r, v, d, last, g, lam):
    adv, run = torch.zeros_like(r), torch.zeros(r.size(1))
    for t in reversed(range(len(r))):
        nxt = last if t == len(r) - 1 else v[t + 1]
        delta = r[t] + g * nxt * (1 - d[t]) - v[t]
        run = delta + g * lam * (1 - d[t]) * run
        adv[t] = run
    return adv


def main(c):
    torch.manual_seed(c["seed"])
    env, pi, vf = Forage(c["n_env"], c["seed"]), net(5), net(1)
    opt = torch.optim.Adam([*pi.parameters(), *vf.parameters()], lr=c["lr"])
    for up in range(1, c["updates"] + 1):
        O, A, R, D, V = [], [], [], [], []
        for _ in range(c["horizon"]):
            o = env.obs()
            with torch.no_grad():
                a, v = Categorical(logits=pi(o)).sample(), vf(o).squeeze(-1)
            r, d = env.step(a.numpy())
            for buf, item in zip((O, A, R, D, V), (o, a, torch.from_numpy(r), torch.from_numpy(d).float(), v)):
                buf.append(item)
        O, A, R, D, V = map(torch.stack, (O, A, R, D, V))
        with torch.no_grad():
            adv = advantages(R, V, D, vf(env.obs()).squeeze(-1), c["gamma"], c["lam"])
        ret = (adv + V).flatten()
        O, A, adv = O.flatten(0, 1), A.flatten(), adv.flatten()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        frac, kls = [], []
        for _ in range(c["epochs"]):
            for mb in torch.randperm(len(A)).chunk(c["minibatches"]):
                dist = Categorical(logits=pi(O[mb]))
                logp = dist.log_prob(A[mb])
                with torch.no_grad():
                    logp_old = Categorical(logits=pi(O[mb])).log_prob(A[mb])
                ratio = (logp - logp_old).exp()
                surr = torch.min(ratio * adv[mb], ratio.clamp(1 - c["clip"], 1 + c["clip"]) * adv[mb])
                v_err = (vf(O[mb]).squeeze(-1) - ret[mb]).pow(2).mean()
                loss = -surr.mean() + c["vf"] * v_err - c["ent"] * dist.entropy().mean()
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(pi.parameters(), 10.0)
                opt.step()
                frac.append(((ratio - 1).abs() > c["clip"]).float().mean().item())
                kls.append((logp_old - logp).mean().item())
        if up % 2 == 0:
            with torch.no_grad():
                ent = Categorical(logits=pi(O)).entropy().mean().item()
            recent = np.mean(env.finished[-c["n_env"]:]) if env.finished else float("nan")
            print(f"update {up:3d}  ep_return {recent:6.2f}  entropy {ent:.4f}  approx_kl {np.mean(kls):.5f}  "
                  f"clipfrac {np.mean(frac):.3f}  v_loss {v_err.item():.3f}  explained_var {1 - ((ret - V.flatten()).var() / ret.var()).item():.3f}")


if __name__ == "__main__":
    main(CFG)
