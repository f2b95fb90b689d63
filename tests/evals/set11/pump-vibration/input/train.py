"""Classify the condition of pumps from short windows of the vibration sensor."""
import argparse
import csv
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--data", type=Path, default=Path("data"))
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--width", type=int, default=8)
    p.add_argument("--seed", type=int, default=11)
    p.add_argument("--metrics", type=Path, default=Path("metrics.csv"))
    return p.parse_args()


def read_npz(path, scale):
    with np.load(path) as z:
        wave = torch.from_numpy(z["wave"].astype(np.float32) / scale)
        label = torch.from_numpy(z["label"].astype(np.int64))
    return wave.unsqueeze(1), label


def load(root):
    meta = json.loads((root / "meta.json").read_text())
    parts = [read_npz(root / name, meta["scale"]) for name in meta["shards"]]
    x = torch.cat([p[0] for p in parts])
    y = torch.cat([p[1] for p in parts])
    vx, vy = read_npz(root / meta["valid"], meta["scale"])
    mean, std = x.mean(), x.std()
    return (x - mean) / std, y, (vx - mean) / std, vy, meta["classes"]


class Net(nn.Module):
    def __init__(self, width, n_classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, width, 9, stride=2, padding=4, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, 2 * width, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm1d(2 * width),
            nn.ReLU(),
            nn.Conv1d(2 * width, 2 * width, 5, stride=2, padding=2, bias=False),
            nn.BatchNorm1d(2 * width),
            nn.ReLU(),
        )
        self.head = nn.Linear(4 * width, n_classes)

    def forward(self, x):
        h = self.body(x)
        return self.head(torch.cat([h.mean(-1), h.amax(-1)], dim=1))


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    args = parse()
    torch.manual_seed(args.seed)
    x, y, vx, vy, classes = load(args.data)
    counts = torch.bincount(y, minlength=len(classes)).tolist()
    print(f"train {tuple(x.shape)}  valid {tuple(vx.shape)}")
    print("class counts " + "  ".join(f"{c}:{n}" for c, n in zip(classes, counts)))

    model = Net(args.width, len(classes))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    steps = args.epochs * (len(x) // args.batch_size)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=args.lr, total_steps=steps, pct_start=0.2)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {steps} steps")

    with args.metrics.open("w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["epoch", "train_loss", "train_acc", "valid_loss", "valid_acc", "lr"])
        for epoch in range(1, args.epochs + 1):
            model.train()
            t0 = time.time()
            order = torch.randperm(len(x))
            total, hits, seen = 0.0, 0, 0
            for b in range(len(x) // args.batch_size):
                idx = order[b * args.batch_size:(b + 1) * args.batch_size]
                logits = model(x[idx])
                loss = F.cross_entropy(logits, y[idx])
                opt.zero_grad(set_to_none=True)
                loss.backward()
                opt.step()
                sched.step()
                total += loss.item() * len(idx)
                hits += (logits.argmax(1) == y[idx]).sum().item()
                seen += len(idx)
            vl, va = evaluate(model, vx, vy)
            lr = opt.param_groups[0]["lr"]
            print(f"epoch {epoch:2d}  train loss {total / seen:.4f} acc {hits / seen:.3f}  "
                  f"valid loss {vl:.4f} acc {va:.3f}  lr {lr:.2e}  {time.time() - t0:.2f}s")
            writer.writerow([epoch, f"{total / seen:.5f}", f"{hits / seen:.4f}", f"{vl:.5f}", f"{va:.4f}", f"{lr:.3e}"])


if __name__ == "__main__":
    main()
