"""REINFORCE on an ad-slot task: pick 1 of 12 ads for a visitor profile."""
import argparse
import torch
import torch.nn as nn
from torch.distributions import Categorical
from torch.utils.tensorboard import SummaryWriter


class Slots:
    def __init__(self, ads=12, feats=6, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.w = torch.randn(feats, ads, generator=self.g)
        self.feats = feats

    def visitors(self, n):
        return torch.randn(n, self.feats, generator=self.g)

    def pay(self, x, a):
        best = (x @ self.w).argmax(1)
        value = 30.0 + 2.0 * (a == best).float()
        return value + 0.5 * torch.randn(len(a), generator=self.g), (a == best).float().mean()


class Policy(nn.Module):
    def __init__(self, feats, ads):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(feats, 64), nn.Tanh(), nn.Linear(64, ads))

    def forward(self, x):
        return Categorical(logits=self.net(x))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--updates", type=int, default=500)
    ap.add_argument("--visitors", type=int, default=64)
    ap.add_argument("--lr", type=float, default=3e-2)
    ap.add_argument("--logdir", default="runs")
    args = ap.parse_args()
    torch.manual_seed(5)
    env = Slots()
    policy = Policy(env.feats, 12)
    opt = torch.optim.Adam(policy.parameters(), lr=args.lr)
    tb = SummaryWriter(args.logdir)
    for u in range(1, args.updates + 1):
        x = env.visitors(args.visitors)
        dist = policy(x)
        a = dist.sample()
        reward, best = env.pay(x, a)
        loss = -(dist.log_prob(a) * reward).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        ent = dist.entropy().mean().item()
        for k, v in (("reward", reward.mean().item()), ("entropy", ent), ("best_ad_rate", best.item())):
            tb.add_scalar(f"rollout/{k}", v, u)
        if u % 25 == 0:
            print(f"{'-' * 34}\n| rollout/            |          |\n|    ep_rew_mean      | {reward.mean():8.3f} |\n"
                  f"|    best_ad_rate     | {best:8.3f} |\n| train/              |          |\n|    n_updates        | {u:8d} |\n"
                  f"|    entropy          | {ent:8.4f} |\n|    policy_loss      | {loss.item():8.4f} |\n{'-' * 34}")
    tb.close()


if __name__ == "__main__":
    main()
