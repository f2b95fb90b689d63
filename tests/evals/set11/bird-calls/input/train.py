"""Species classifier on short call patches. Few labelled clips, so the training clips are augmented heavily."""
import argparse
import time

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from calls import SPECIES, Calls, recordings


class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(2 * width * 5 * 8, 64), nn.ReLU(), nn.Linear(64, SPECIES))

    def forward(self, x):
        return self.head(self.features(x))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    for x, y in loader:
        out = model(x)
        loss += F.cross_entropy(out, y, reduction="sum").item()
        hits += (out.argmax(1) == y).sum().item()
        n += len(y)
    return loss / n, hits / n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--clips", type=int, default=160)
    p.add_argument("--epochs", type=int, default=50)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--lr", type=float, default=1.5e-3)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--no-augment", action="store_true")
    p.add_argument("--seed", type=int, default=4)
    args = p.parse_args()

    torch.manual_seed(args.seed)
    train_set = Calls(*recordings(args.clips, seed=100, spread=False), augment=not args.no_augment, seed=args.seed)
    valid_set = Calls(*recordings(400, seed=200), augment=False)
    train_loader = DataLoader(train_set, batch_size=args.batch, shuffle=True, num_workers=args.workers,
                              persistent_workers=args.workers > 0, prefetch_factor=4 if args.workers else None)
    valid_loader = DataLoader(valid_set, batch_size=200)

    model = Net()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs * len(train_loader))
    print(f"{len(train_set)} training clips, {len(valid_set)} validation clips, augmentation "
          f"{'on' if train_set.augment else 'off'}, {args.workers} workers")

    for epoch in range(args.epochs):
        t0 = time.time()
        train_set.set_epoch(epoch)
        model.train()
        loss_sum, hits = 0.0, 0
        for x, y in train_loader:
            out = model(x)
            loss = F.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            loss_sum += loss.item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
        if (epoch + 1) % 5 == 0 or epoch == 0:
            vl, va = evaluate(model, valid_loader)
            print(f"epoch {epoch + 1:3d}  train loss {loss_sum / len(train_set):.4f} acc {hits / len(train_set):.3f}  "
                  f"valid loss {vl:.4f} acc {va:.3f}  {time.time() - t0:.2f}s", flush=True)


if __name__ == "__main__":
    main()
