import os
import numpy as np
import torch
from torch import nn


class TwoTower(nn.Module):
    def __init__(self, n_user, n_ad, d=6):
        super().__init__()
        self.u, self.a = nn.Embedding(n_user, d), nn.Embedding(n_ad, d)
        self.ctx = nn.Linear(5, 1)
        self.ub, self.ab = nn.Embedding(n_user, 1), nn.Embedding(n_ad, 1)
        for e in (self.u, self.a):
            nn.init.normal_(e.weight, std=0.2)
        for e in (self.ub, self.ab):
            nn.init.zeros_(e.weight)

    def forward(self, b):
        hour = b["hour"].float() * (2 * np.pi / 24)
        dev = nn.functional.one_hot(b["device"], 3).float()
        c = torch.cat([hour.sin()[:, None], hour.cos()[:, None], dev], 1)
        s = (self.u(b["user"]) * self.a(b["ad"])).sum(1)
        return s + (self.ub(b["user"]) + self.ab(b["ad"]) + self.ctx(c)).squeeze(1)


class Worker:
    """One rank: own replica, own part of the rows, gradients are exchanged by the launcher."""

    def __init__(self, rank, world, data, rows, cfg):
        self.rank, self.world, self.data = rank, world, data
        g = np.random.default_rng(cfg.seed)
        shards = np.array_split(g.permutation(rows), world)
        self.rows = shards[int(os.environ.get("RANK", 0))]
        torch.manual_seed(cfg.seed)          # same init on every rank
        self.model = TwoTower(120, 80)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=cfg.wd)
        self.shuffle = np.random.default_rng(1000 + rank)

    def batches(self, bs):
        o = self.shuffle.permutation(self.rows)
        for i in range(0, len(o) - bs + 1, bs):
            yield {k: v[o[i:i + bs]] for k, v in self.data.items()}

    def backward(self, batch):
        loss = nn.functional.binary_cross_entropy_with_logits(self.model(batch), batch["click"])
        self.opt.zero_grad()
        loss.backward()
        return loss.item()
