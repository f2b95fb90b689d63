from dataclasses import dataclass
import time

import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset

from data import load_turbine


@dataclass
class Config:
    hidden: int = 32
    lr: float = 0.05
    momentum: float = 0.9
    max_norm: float = 0.5
    batch: int = 32
    epochs: int = 6
    seed: int = 3


class PowerGRU(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        h, _ = self.gru(x)
        return self.mlp(h[:, -1]).squeeze(-1)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        train, val = load_turbine()
        self.train_dl = DataLoader(TensorDataset(*train), batch_size=cfg.batch, shuffle=True)
        self.val_x, self.val_y = val
        self.net = PowerGRU(cfg.hidden)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=cfg.lr, momentum=cfg.momentum)
        self.step_no = 0

    def step(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(self.net(x), y)
        loss.backward()
        self.opt.step()
        grad_norm = clip_grad_norm_(self.net.parameters(), self.cfg.max_norm)
        self.step_no += 1
        return loss.item(), grad_norm.item()

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        v = nn.functional.mse_loss(self.net(self.val_x), self.val_y).item()
        self.net.train()
        return v

    def fit(self):
        print(f"config: {self.cfg}")
        for epoch in range(1, self.cfg.epochs + 1):
            t0, losses, norms = time.time(), [], []
            for x, y in self.train_dl:
                l, g = self.step(x, y)
                losses.append(l)
                norms.append(g)
            losses.sort()
            print(f"epoch={epoch} median_loss={losses[len(losses) // 2]:.4g} max_loss={losses[-1]:.4g} "
                  f"max_grad_norm={max(norms):.4g} clip={self.cfg.max_norm} val_mse={self.validate():.4g} "
                  f"sec={time.time() - t0:.1f}")


if __name__ == "__main__":
    Trainer(Config()).fit()
