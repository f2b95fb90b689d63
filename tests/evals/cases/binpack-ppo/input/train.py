import torch
import torch.nn as nn
from torch.distributions import Categorical
from env import PackEnv

torch.manual_seed(0)
CFG = dict(n_env=64, rollout=40, updates=60, epochs=4, minibatch=640, lr=1e-3, gamma=0.97, lam=0.95,
           clip=0.2, vf=0.5, ent=0.003, target_kl=0.03, max_grad=0.5)


class Agent(nn.Module):
    def __init__(self, obs_dim, n_act, width=96):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(obs_dim, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, n_act))
        self.v = nn.Sequential(nn.Linear(obs_dim, width), nn.Tanh(), nn.Linear(width, 1))

    def dist(self, obs, valid=None):
        logits = self.pi(obs)
        if valid is not None:
            logits = logits.masked_fill(~valid, -1e9)
        return Categorical(logits=logits)

    @torch.no_grad()
    def act(self, obs, valid):
        d = self.dist(obs, valid)
        a = d.sample()
        return a, d.log_prob(a), self.v(obs).squeeze(-1)

    def evaluate(self, obs, act):
        d = self.dist(obs)
        return d.log_prob(act), d.entropy(), self.v(obs).squeeze(-1)


def collect(env, agent, obs, valid):
    buf = {k: [] for k in ("obs", "valid", "act", "logp", "val", "rew", "done")}
    for _ in range(CFG["rollout"]):
        a, lp, v = agent.act(obs, valid)
        nobs, nvalid, r, d = env.step(a)
        for k, x in zip(buf, (obs, valid, a, lp, v, r, d)):
            buf[k].append(x)
        obs, valid = nobs, nvalid
    buf = {k: torch.stack(x) for k, x in buf.items()}
    with torch.no_grad():
        last = agent.v(obs).squeeze(-1)
    adv, run = torch.zeros_like(buf["rew"]), 0.0
    for t in reversed(range(CFG["rollout"])):
        nxt = last if t == CFG["rollout"] - 1 else buf["val"][t + 1]
        live = 1 - buf["done"][t]
        delta = buf["rew"][t] + CFG["gamma"] * nxt * live - buf["val"][t]
        run = delta + CFG["gamma"] * CFG["lam"] * live * run
        adv[t] = run
    buf["adv"], buf["ret"] = adv, adv + buf["val"]
    return {k: x.flatten(0, 1) for k, x in buf.items()}, obs, valid


def update(agent, opt, buf):
    n = len(buf["act"])
    stats, done_mb, stop = [], 0, False
    for _ in range(CFG["epochs"]):
        for idx in torch.randperm(n).split(CFG["minibatch"]):
            lp, ent, v = agent.evaluate(buf["obs"][idx], buf["act"][idx])
            logr = lp - buf["logp"][idx]
            ratio = logr.exp()
            kl = ((ratio - 1) - logr).mean().item()
            a = buf["adv"][idx]
            a = (a - a.mean()) / (a.std() + 1e-8)
            pg = -torch.min(ratio * a, ratio.clamp(1 - CFG["clip"], 1 + CFG["clip"]) * a).mean()
            loss = pg + CFG["vf"] * (v - buf["ret"][idx]).pow(2).mean() - CFG["ent"] * ent.mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), CFG["max_grad"])
            opt.step()
            done_mb += 1
            stats.append((kl, ((ratio - 1).abs() > CFG["clip"]).float().mean().item(), ent.mean().item()))
            if kl > CFG["target_kl"]:
                stop = True
                break
        if stop:
            break
    s = torch.tensor(stats).mean(0).tolist()
    return dict(kl=s[0], clipfrac=s[1], ent=s[2], mb=done_mb)


def main():
    env = PackEnv(CFG["n_env"])
    obs, valid = env.reset()
    agent = Agent(obs.shape[1], env.b)
    opt = torch.optim.Adam(agent.parameters(), lr=CFG["lr"])
    print("upd  ep_return  fullrate  kl      clipfrac entropy  minibatches  valid_frac")
    for u in range(CFG["updates"]):
        buf, obs, valid = collect(env, agent, obs, valid)
        s = update(agent, opt, buf)
        if u % 4 == 0 or u == CFG["updates"] - 1:
            rew = buf["rew"]
            print(f"{u:3d}  {rew.mean() * env.h:9.3f}  {(rew == 1).float().mean():8.3f}  {s['kl']:.4f}  {s['clipfrac']:.3f}    "
                  f"{s['ent']:.3f}    {s['mb']:3d}          {buf['valid'].float().mean():.2f}")


if __name__ == "__main__":
    main()
