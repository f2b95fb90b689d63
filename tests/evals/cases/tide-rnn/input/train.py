"""Tide gauge forecaster: a ReLU RNN reads two days of hourly levels and predicts the next six hours."""
import argparse
import logging
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-5s tide | %(message)s", datefmt="%H:%M:%S")
log = logging.getLogger("tide")


class TideWindows(Dataset):
    def __init__(self, hours=3000, ctx=48, horizon=6, seed=0):
        g = torch.Generator().manual_seed(seed)
        t = torch.arange(hours, dtype=torch.float32)
        level = (1.9 * torch.sin(2 * math.pi * t / 12.42) + 0.6 * torch.sin(2 * math.pi * t / 12.0 + 0.4)
                 + 0.35 * torch.sin(2 * math.pi * t / 23.93 + 1.1))
        surge = torch.randn(hours, generator=g) * 0.08
        self.level = level + surge
        self.ctx, self.horizon = ctx, horizon

    def __len__(self):
        return len(self.level) - self.ctx - self.horizon

    def __getitem__(self, i):
        j = i + self.ctx
        return self.level[i:j].unsqueeze(-1), self.level[j:j + self.horizon]


class Forecaster(nn.Module):
    def __init__(self, hidden=48, layers=2, horizon=6):
        super().__init__()
        self.rnn = nn.RNN(1, hidden, num_layers=layers, nonlinearity="relu", batch_first=True)
        self.head = nn.Linear(hidden, horizon)
        for name, p in self.rnn.named_parameters():
            if "weight_hh" in name:
                p.data.copy_(0.97 * torch.eye(hidden))
            elif "bias" in name:
                nn.init.zeros_(p)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.head(h[:, -1])


class Runner:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.args = args
        self.model = Forecaster(args.hidden)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=args.lr, momentum=0.9)
        self.train_dl = DataLoader(TideWindows(), batch_size=args.batch_size, shuffle=True)
        self.val_dl = DataLoader(TideWindows(hours=600, seed=7), batch_size=128)

    def step(self, x, y):
        self.model.train()
        self.opt.zero_grad(set_to_none=True)
        loss = nn.functional.smooth_l1_loss(self.model(x), y)
        loss.backward()
        self.opt.step()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
        return loss.item(), float(norm)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        err = [(self.model(x) - y).abs().mean().item() for x, y in self.val_dl]
        return sum(err) / len(err)

    def fit(self):
        n = 0
        for epoch in range(self.args.epochs):
            for x, y in self.train_dl:
                loss, norm = self.step(x, y)
                n += 1
                if n % 15 == 0 or n <= 5:
                    log.info("step %4d  smooth_l1 %.4g  |g| %.3g  (max_norm %.2f)", n, loss, norm, self.args.clip)
            log.info("epoch %d done, validation MAE %.4g m", epoch + 1, self.validate())


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--hidden", type=int, default=48)
    ap.add_argument("--lr", type=float, default=0.02)
    ap.add_argument("--clip", type=float, default=0.5)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--seed", type=int, default=3)
    Runner(ap.parse_args()).fit()
