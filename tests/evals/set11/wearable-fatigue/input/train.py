"""Detect fatigue from one-minute windows of a wrist sensor (accelerate)."""
import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


@dataclass
class Settings:
    data: Path = Path("data")
    valid_fraction: float = 0.25
    epochs: int = 25
    batch_size: int = 64
    lr: float = 2e-3
    hidden: int = 96
    dropout: float = 0.2
    weight_decay: float = 1e-2
    seed: int = 2


def read(path):
    with path.open(newline="") as fh:
        reader = csv.reader(fh)
        header = next(reader)
        table = np.array([[float(v) for v in row] for row in reader], dtype=np.float32)
    who = table[:, 0].astype(int)
    y = table[:, header.index("fatigued")].astype(np.int64)
    return who, torch.from_numpy(table[:, 3:]), torch.from_numpy(y)


def make_loaders(cfg):
    who, x, y = read(cfg.data / "windows.csv")
    full = TensorDataset(x, y)
    n_valid = int(len(full) * cfg.valid_fraction)
    train, valid = random_split(full, [len(full) - n_valid, n_valid],
                                generator=torch.Generator().manual_seed(cfg.seed))
    mean, std = x[train.indices].mean(0), x[train.indices].std(0)
    fwho, fx, fy = read(cfg.data / "followup.csv")
    print(f"windows {len(full)} from {len(set(who))} participants: {len(train)} train, {len(valid)} valid, "
          f"{y.float().mean():.2f} fatigued")
    print(f"follow-up study {len(fy)} windows from {len(set(fwho))} participants, {fy.float().mean():.2f} fatigued")
    return (DataLoader(train, batch_size=cfg.batch_size, shuffle=True),
            DataLoader(valid, batch_size=256),
            DataLoader(TensorDataset(fx, fy), batch_size=256), mean, std)


class Net(nn.Module):
    def __init__(self, mean, std, hidden, dropout):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.layers = nn.Sequential(
            nn.Linear(len(mean), hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, 2))

    def forward(self, x):
        return self.layers((x - self.mean) / self.std)


@torch.no_grad()
def evaluate(acc, model, loader):
    model.eval()
    logits, labels = [], []
    for x, y in loader:
        out, y = acc.gather_for_metrics((model(x), y))
        logits.append(out)
        labels.append(y)
    logits, labels = torch.cat(logits), torch.cat(labels)
    return F.cross_entropy(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()


def main():
    cfg = Settings()
    set_seed(cfg.seed)
    acc = Accelerator(cpu=True)
    train, valid, follow, mean, std = make_loaders(cfg)
    model = Net(mean, std, cfg.hidden, cfg.dropout)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    model, opt, train, valid, follow = acc.prepare(model, opt, train, valid, follow)

    best, best_state = float("inf"), None
    for epoch in range(1, cfg.epochs + 1):
        model.train()
        total, count = 0.0, 0
        for x, y in train:
            loss = F.cross_entropy(model(x), y)
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            total += loss.item() * len(y)
            count += len(y)
        vl, va = evaluate(acc, model, valid)
        if vl < best:
            best = vl
            best_state = {k: v.clone() for k, v in acc.unwrap_model(model).state_dict().items()}
        if epoch % 2 == 1:
            acc.print(f"epoch {epoch:2d}  train loss {total / count:.4f}  valid loss {vl:.4f}  valid acc {va:.3f}")

    acc.unwrap_model(model).load_state_dict(best_state)
    vl, va = evaluate(acc, model, valid)
    fl, fa = evaluate(acc, model, follow)
    acc.print(f"best epoch   valid loss {vl:.4f} acc {va:.3f}")
    acc.print(f"follow-up    loss {fl:.4f} acc {fa:.3f}")


if __name__ == "__main__":
    main()
