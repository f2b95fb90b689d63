import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from dataset import Clusters, collate


def build_loaders(args):
    def seed_worker(worker_id):
        np.random.seed(args.seed + worker_id)
        random.seed(args.seed + worker_id)

    train = DataLoader(Clusters(args.data, "train", augment=not args.no_augment), batch_size=args.batch_size,
                       num_workers=args.workers, collate_fn=collate, worker_init_fn=seed_worker)
    val = DataLoader(Clusters(args.data, "val"), batch_size=128, collate_fn=collate)
    return train, val


class PointNet(nn.Module):
    def __init__(self, classes, width=96):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes))

    def forward(self, x, mask):
        h = self.point(x).masked_fill(~mask[..., None], 0.0)
        return self.head(h.max(1).values)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="clusters.npz")
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--batch-size", type=int, default=20)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=17)
    p.add_argument("--no-augment", action="store_true")
    args = p.parse_args()
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    train, val = build_loaders(args)
    print(f"train {len(train.dataset)}  val {len(val.dataset)}  workers {args.workers}  augment {not args.no_augment}", flush=True)
    model = PointNet(4)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total, yaws = 0.0, []
        for x, mask, y, yaw in train:
            loss = F.cross_entropy(model(x, mask), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
            yaws.append(yaw)
        model.eval()
        vl = hit = 0.0
        with torch.no_grad():
            for x, mask, y, _ in val:
                out = model(x, mask)
                vl += F.cross_entropy(out, y, reduction="sum").item()
                hit += (out.argmax(-1) == y).sum().item()
        n = len(val.dataset)
        if epoch % 3 == 0 or epoch == args.epochs - 1:
            print(f"epoch {epoch:2d}  train loss {total / len(train.dataset):.4f}  val loss {vl / n:.4f}  val acc {hit / n:.3f}  "
                  f"yaw mean {torch.cat(yaws).mean():+.4f}", flush=True)


if __name__ == "__main__":
    main()
