import logging

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from complexes import Complexes
from losses import AffinityLoss

logging.basicConfig(format="%(levelname).1s | %(message)s", level=logging.INFO)


class TwoTower(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.lig = nn.Sequential(nn.Linear(64, d), nn.ReLU(), nn.Linear(d, d))
        self.poc = nn.Sequential(nn.Linear(16, d), nn.ReLU(), nn.Linear(d, d))
        self.bias = nn.Parameter(torch.tensor(6.0))

    def forward(self, l, p):
        return (self.lig(l) * self.poc(p)).sum(-1) / 8 + self.bias


class Run:
    def __init__(self):
        torch.manual_seed(1)
        self.net = TwoTower()
        self.crit = AffinityLoss()
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=2e-3, weight_decay=1e-3)
        self.fit_loader = DataLoader(Complexes("fit"), batch_size=32, shuffle=True)
        self.held = DataLoader(Complexes("held"), batch_size=320)

    def epoch(self, k):
        self.net.train()
        for b, (l, p, y) in enumerate(self.fit_loader):
            loss = self.crit(self.net(l, p), y)
            self.opt.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(self.net.parameters(), 2.0)
            self.opt.step()
            if b % 40 == 0:
                logging.info("epoch %d batch %02d/%d loss %.4f |g| %.3f", k, b, len(self.fit_loader), loss.item(), norm)

    @torch.no_grad()
    def check(self, k):
        self.net.eval()
        l, p, y = next(iter(self.held))
        f = self.net(l, p)
        r = torch.corrcoef(torch.stack([f, y]))[0, 1].item()
        logging.info("epoch %d held-out rmse %.3f pearson %.3f", k, (f - y).pow(2).mean().sqrt().item(), r)


if __name__ == "__main__":
    run = Run()
    for k in range(1, 9):
        run.epoch(k)
        run.check(k)
