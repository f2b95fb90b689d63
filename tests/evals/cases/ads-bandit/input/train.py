"""Policy gradient for choosing one of six ads given the context of a visitor (simulated click-through)."""
import json
from dataclasses import dataclass, asdict

import torch
import torch.nn as nn
from torch.distributions import Categorical


@dataclass
class HP:
    arms: int = 6
    ctx: int = 8
    batch: int = 64
    iters: int = 400
    lr: float = 5e-3
    ent_coef: float = 0.5
    vf_coef: float = 0.5
    seed: int = 4


class ClickWorld:
    """Best arm depends on the segment of the visitor, arm 0 is a decent default for everybody."""

    def __init__(self, hp):
        self.hp = hp
        self.centres = 2.0 * torch.randn(hp.arms, hp.ctx)

    def visitors(self):
        seg = torch.randint(0, self.hp.arms, (self.hp.batch,))
        return self.centres[seg] + 0.3 * torch.randn(self.hp.batch, self.hp.ctx), seg

    def clicks(self, seg, arm):
        p = torch.where(arm == seg, torch.tensor(0.9), torch.where(arm == 0, torch.tensor(0.4), torch.tensor(0.05)))
        return torch.bernoulli(p)


class Agent(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(hp.ctx, 48), nn.Tanh())
        self.pi = nn.Linear(48, hp.arms)
        self.v = nn.Linear(48, 1)

    def forward(self, c):
        h = self.trunk(c)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def main():
    hp = HP()
    torch.manual_seed(hp.seed)
    world, agent = ClickWorld(hp), Agent(hp)
    opt = torch.optim.Adam(agent.parameters(), lr=hp.lr)
    print(json.dumps({"event": "config", **asdict(hp)}))
    ctr, ent_avg, share = 0.2, 1.8, 0.0
    for it in range(1, hp.iters + 1):
        c, seg = world.visitors()
        dist, value = agent(c)
        arm = dist.sample()
        reward = world.clicks(seg, arm)
        adv = reward - value.detach()
        entropy = dist.entropy().mean()
        pg = -(dist.log_prob(arm) * adv).mean()
        vf = (value - reward).pow(2).mean()
        loss = pg + hp.vf_coef * vf + hp.ent_coef * entropy
        opt.zero_grad()
        loss.backward()
        opt.step()
        ctr = 0.95 * ctr + 0.05 * reward.mean().item()
        top = arm.bincount(minlength=hp.arms).max().item() / hp.batch
        if it % 40 == 0 or it == 1:
            print(json.dumps({"it": it, "ctr": round(ctr, 3), "entropy": round(entropy.item(), 4), "top_arm_share": round(top, 3),
                              "pg": round(pg.item(), 4), "vf": round(vf.item(), 4)}))


if __name__ == "__main__":
    main()
