"""Star rating from review text; effective batch 64 on a small machine."""
import argparse
import csv
import zlib

import torch
from torch import nn

BUCKETS = 4096


def read(path):
    out = []
    with open(path, newline="") as fh:
        for row in csv.DictReader(fh):
            ids = torch.tensor([zlib.crc32(w.encode()) % BUCKETS for w in row["text"].split()])
            out.append((ids, int(row["stars"]) - 1))
    return out


def collate(rows):
    flat = torch.cat([ids for ids, _ in rows])
    offsets = torch.tensor([0] + [len(ids) for ids, _ in rows[:-1]]).cumsum(0)
    return flat, offsets, torch.tensor([s for _, s in rows])


class Stars(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.bag = nn.EmbeddingBag(BUCKETS, dim, mode="mean")
        self.net = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 5))

    def forward(self, flat, offsets):
        return self.net(self.bag(flat, offsets))


def windows(batches, size):
    """Groups of up to `size` micro-batches; the last group of an epoch may be shorter."""
    group = []
    for b in batches:
        group.append(b)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--micro", type=int, default=8)
    p.add_argument("--accumulate", type=int, default=8)
    p.add_argument("--epochs", type=int, default=15)
    p.add_argument("--lr", type=float, default=4e-3)
    a = p.parse_args()
    torch.manual_seed(77)
    train, test = read("reviews/train.csv"), read("reviews/test.csv")
    model = Stars()
    opt = torch.optim.Adam(model.parameters(), lr=a.lr)
    for epoch in range(a.epochs):
        order = torch.randperm(len(train)).split(a.micro)
        seen, run, steps, last = 0, 0.0, 0, 0
        for group in windows(order, a.accumulate):
            count = sum(len(rows) for rows in group)
            opt.zero_grad()
            for rows in group:
                flat, offsets, stars = collate([train[i] for i in rows])
                loss = nn.functional.cross_entropy(model(flat, offsets), stars, reduction="sum")
                (loss / count).backward()
                run += loss.item()
            opt.step()
            seen, steps, last = seen + count, steps + 1, len(group)
        with torch.no_grad():
            flat, offsets, stars = collate(test)
            guess = model(flat, offsets).argmax(1)
        print(f"epoch {epoch} optimizer_steps {steps} last_window {last}/{a.accumulate} samples {seen} "
              f"loss {run / seen:.4f} test_acc {(guess == stars).float().mean():.3f} "
              f"test_within_one {((guess - stars).abs() <= 1).float().mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
