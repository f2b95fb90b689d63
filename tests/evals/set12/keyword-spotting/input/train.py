"""Train a small 1-D conv net on log-mel clips of spoken commands."""
import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", type=Path, default=Path("data"))
    p.add_argument("--epochs", type=int, default=16)
    p.add_argument("--batch-size", type=int, default=48)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--weight-decay", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=11)
    return p.parse_args()


def read_split(root, index, split):
    feats, labels, speakers = [], [], []
    for entry in index[split]:
        shard = np.load(root / entry["file"])
        feats.append(shard["logmel"].astype(np.float32))
        labels.append(shard["label"].astype(np.int64))
        speakers.append(shard["speaker"].astype(np.int64))
        assert len(feats[-1]) == entry["clips"], entry
    x = torch.from_numpy(np.concatenate(feats))
    y = torch.from_numpy(np.concatenate(labels))
    return x, y, torch.from_numpy(np.concatenate(speakers))


class CommandNet(nn.Module):
    def __init__(self, n_mels, n_classes, width=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(n_mels, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2), nn.BatchNorm1d(width), nn.ReLU(),
        )
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(width, n_classes)

    def forward(self, x):
        return self.head(self.drop(self.body(x).mean(-1)))


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(-1) == y).float().mean().item()


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    index = json.loads((args.data / "index.json").read_text())
    classes = (args.data / "classes.txt").read_text().split()
    x, y, spk = read_split(args.data, index, "train")
    xv, yv, _ = read_split(args.data, index, "val")
    mean, std = x.mean((0, 2), keepdim=True), x.std((0, 2), keepdim=True)
    x, xv = (x - mean) / std, (xv - mean) / std
    print(f"train {len(x)} clips, {spk.unique().numel()} speakers; val {len(xv)} clips; {len(classes)} commands", flush=True)

    model = CommandNet(x.shape[1], len(classes))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    steps = args.epochs * (len(x) // args.batch_size)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, args.lr, total_steps=steps)
    for epoch in range(args.epochs):
        model.train()
        order = torch.randperm(len(x))
        total = hits = seen = 0
        for i in range(len(x) // args.batch_size):
            idx = order[i * args.batch_size:(i + 1) * args.batch_size]
            logits = model(x[idx])
            loss = F.cross_entropy(logits, y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item() * len(idx)
            hits += (logits.argmax(-1) == y[idx]).sum().item()
            seen += len(idx)
        vl, va = evaluate(model, xv, yv)
        print(f"epoch {epoch:2d}  train loss {total / seen:.4f} acc {hits / seen:.3f}  val loss {vl:.4f} acc {va:.3f}", flush=True)
    torch.save(model.state_dict(), "commandnet.pt")


if __name__ == "__main__":
    main()
