import math
import os
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class TrainConfig:
    seq_len: int = 48
    n_class: int = 5
    d_model: int = 32
    heads: int = 4
    layers: int = 2
    micro_batch: int = 16
    train_samples: int = 2560
    epochs: int = 2
    lr: float = 2.0e-3
    min_lr: float = 2.0e-5
    warmup_epochs: float = 0.5
    clip_grad: float = 1.0
    log_interval: int = 10
    seed: int = 1234


class BeatEncoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.inp = nn.Conv1d(1, c.d_model, 5, padding=2)
        self.pos = nn.Parameter(0.02 * torch.randn(c.seq_len, c.d_model))
        layer = nn.TransformerEncoderLayer(c.d_model, c.heads, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, c.layers, enable_nested_tensor=False)
        self.cls = nn.Linear(c.d_model, c.n_class)

    def forward(self, x):
        h = self.inp(x[:, None]).transpose(1, 2) + self.pos
        return self.cls(self.enc(h).mean(1))


def beats(c):
    g = torch.Generator().manual_seed(c.seed)
    t = torch.linspace(0, 1, c.seq_len)
    y = torch.randint(0, c.n_class, (c.train_samples,), generator=g)
    centre = 0.3 + 0.4 * torch.rand(c.train_samples, 1, generator=g)
    width = 0.02 + 0.02 * y[:, None]
    x = torch.exp(-((t - centre) / width) ** 2) + 0.1 * torch.randn(c.train_samples, c.seq_len, generator=g)
    return x, y


class LinearWarmupCosine:
    def __init__(self, opt, c, samples, total_iters):
        self.opt, self.c, self.total = opt, c, total_iters
        self.warmup = int(c.warmup_epochs * samples)
        self.it = 0

    def step(self):
        self.it += 1
        if self.it < self.warmup:
            lr = self.c.lr * self.it / self.warmup
        else:
            frac = (self.it - self.warmup) / max(1, self.total - self.warmup)
            lr = self.c.min_lr + 0.5 * (self.c.lr - self.c.min_lr) * (1 + math.cos(math.pi * min(1.0, frac)))
        for group in self.opt.param_groups:
            group["lr"] = lr
        return lr


def train(c=TrainConfig(epochs=int(os.environ.get("EPOCHS", 2)))):
    torch.manual_seed(c.seed)
    x, y = beats(c)
    model = BeatEncoder(c)
    opt = torch.optim.AdamW(model.parameters(), lr=c.lr, betas=(0.9, 0.95), weight_decay=0.05)
    per_epoch = c.train_samples // c.micro_batch
    total = per_epoch * c.epochs
    sched = LinearWarmupCosine(opt, c, len(x), total)
    it, t0 = 0, time.time()
    for _ in range(c.epochs):
        for idx in torch.randperm(len(x)).split(c.micro_batch):
            lr = sched.step()
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            gn = nn.utils.clip_grad_norm_(model.parameters(), c.clip_grad)
            opt.step()
            it += 1
            if it % c.log_interval == 0:
                ms = (time.time() - t0) * 1000 / c.log_interval
                print(f" iteration {it:8d}/{total:8d} | consumed samples: {it * c.micro_batch:12d} | elapsed time per "
                      f"iteration (ms): {ms:.1f} | learning rate: {lr:.6E} | global batch size: {c.micro_batch:5d} | "
                      f"beat loss: {loss.item():.6E} | grad norm: {gn.item():.3f} | number of skipped iterations:   0 | "
                      f"number of nan iterations:   0 |", flush=True)
                t0 = time.time()


if __name__ == "__main__":
    train()
