"""Pollen concentration of tomorrow from a week of weather (7 days x 6 variables)."""
import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def weather(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 7, 6, generator=g)
    x = x + 0.5 * x.roll(1, 1)
    season = torch.sin(1.5 * x[:, :, 0].mean(1)) * 2
    burst = torch.relu(x[:, -3:, 1].sum(1)) * torch.sigmoid(2 * x[:, -1, 2])
    wash = torch.tanh(x[:, -2:, 3].mean(1)) * x[:, -1, 4]
    y = season + 0.8 * burst - wash + 0.1 * torch.randn(n, generator=g)
    return TensorDataset(x, y)


class DayMixer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.days = nn.Linear(7, 7)
        self.norm2 = nn.LayerNorm(dim)
        self.channels = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, h):
        h = h + self.days(self.norm(h).transpose(1, 2)).transpose(1, 2)
        return h + self.channels(self.norm2(h))


class PollenNet(nn.Module):
    def __init__(self, dim=32, depth=2):
        super().__init__()
        self.inp = nn.Linear(6, dim)
        self.blocks = nn.ModuleList(DayMixer(dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 1)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h).mean(1)).squeeze(-1)


def make_optimizer(model, lr, wd):
    """Weight decay for matrices only."""
    matrices = (p for p in model.parameters() if p.ndim >= 2)
    vectors = (p for p in model.parameters() if p.ndim < 2)
    print(json.dumps({"decayed": sum(p.numel() for p in matrices), "plain": sum(p.numel() for p in vectors)}))
    groups = [
        {"params": matrices, "weight_decay": wd},
        {"params": vectors, "weight_decay": 0.0},
        {"params": [nn.Parameter(torch.ones(()))], "weight_decay": 0.0, "name": "temperature"},
    ]
    return torch.optim.AdamW(groups, lr=lr)


def main():
    torch.manual_seed(1)
    train = DataLoader(weather(3000, 1), batch_size=64, shuffle=True)
    val = DataLoader(weather(800, 2), batch_size=200)
    model = PollenNet()
    opt = make_optimizer(model, lr=2e-3, wd=0.02)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=12)
    with open("metrics.jsonl", "w") as out:
        for epoch in range(12):
            model.train()
            tot = 0.0
            for x, y in train:
                opt.zero_grad()
                loss = F.smooth_l1_loss(model(x), y)
                loss.backward()
                gn = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                opt.step()
                tot += loss.item() * len(y)
            model.eval()
            with torch.no_grad():
                err = torch.cat([(model(x) - y).abs() for x, y in val]).mean().item()
            row = {"epoch": epoch, "train_loss": round(tot / 3000, 5), "val_mae": round(err, 5),
                   "grad_norm": round(float(gn), 4), "lr": sched.get_last_lr()[0]}
            print(json.dumps(row))
            out.write(json.dumps(row) + "\n")
            sched.step()


if __name__ == "__main__":
    main()
