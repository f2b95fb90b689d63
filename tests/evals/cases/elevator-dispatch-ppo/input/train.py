"""Clipped policy gradient for an elevator parking policy."""
import numpy as np
import torch
from torch import nn

FLOORS = 8


class Building:
    """Elevator waits at the chosen floor; a call then arrives somewhere."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def state(self):
        self.hour = self.rng.uniform(0, 24)
        return np.array([np.sin(self.hour * np.pi / 12), np.cos(self.hour * np.pi / 12)], np.float32)

    def cost(self, floor):
        busy = 0 if 7 <= self.hour < 11 else (FLOORS - 1 if 16 <= self.hour < 19 else FLOORS // 2)
        call = np.clip(self.rng.normal(busy, 1.2), 0, FLOORS - 1)
        return -abs(call - floor)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, FLOORS))
        self.v = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 1))


def collect(agent, env, n):
    s, a, lp, r = [], [], [], []
    for _ in range(n):
        obs = torch.from_numpy(env.state())
        with torch.no_grad():
            d = torch.distributions.Categorical(logits=agent.pi(obs))
            act = d.sample()
        s.append(obs); a.append(act); lp.append(d.log_prob(act)); r.append(env.cost(act.item()))
    return torch.stack(s), torch.stack(a), torch.stack(lp), torch.tensor(r, dtype=torch.float32)


def main():
    torch.manual_seed(4)
    agent, env = Agent(), Building(4)
    opt = torch.optim.Adam(agent.parameters(), lr=3e-3)
    rollout, minibatch = 256, 64
    for update in range(14):
        if update == 6:
            rollout = 321                # five minutes more per shift from here on
        s, a, old_lp, r = collect(agent, env, rollout)
        stats = []
        for _ in range(3):
            for idx in torch.randperm(rollout).split(minibatch):
                v = agent.v(s[idx]).squeeze(-1)
                adv = (r[idx] - v).detach()
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                lp = torch.distributions.Categorical(logits=agent.pi(s[idx]), validate_args=False).log_prob(a[idx])
                ratio = (lp - old_lp[idx]).exp()
                pg = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
                loss = pg + 0.5 * (v - r[idx]).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                opt.step()
                stats.append((pg.item(), loss.item()))
        pg, total = np.mean(stats, 0)
        print(f"update={update:02d} samples={rollout} reward={r.mean():.3f} policy_loss={pg:.4f} total_loss={total:.4f}", flush=True)


if __name__ == "__main__":
    main()
