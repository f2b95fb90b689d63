"""5-fold cross-validation of a small net on the plant measurements."""
import csv
import sys

import numpy as np
import torch
import torch.nn as nn

OPTIONS = {
    "lr": 0.01,
    "body_factor": 0.3,      # the body learns slower than the head
    "weight_decay": 1e-4,
}
FOLDS, EPOCHS, BATCH = 5, 14, 64


def read(path):
    with open(path) as f:
        rows = list(csv.reader(f))
    header, rows = rows[0], rows[1:]
    x = np.array([[float(v) for v in r[:-1]] for r in rows], dtype=np.float32)
    names = sorted({r[-1] for r in rows})
    y = np.array([names.index(r[-1]) for r in rows])
    return x, y, names


class PlantNet(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.head = nn.Linear(64, n_out)

    def forward(self, x):
        return self.head(self.body(x))


def make_optimizer(net, options):
    groups = [{"params": list(net.head.parameters()), "lr": options["lr"]}]
    options["lr"] *= options["body_factor"]
    groups.append({"params": list(net.body.parameters())})
    return torch.optim.AdamW(groups, lr=options["lr"], weight_decay=options["weight_decay"])


def fit_fold(x, y, train_idx, test_idx, n_out):
    mean, std = x[train_idx].mean(0), x[train_idx].std(0)
    xt = torch.from_numpy((x[train_idx] - mean) / std)
    xe = torch.from_numpy((x[test_idx] - mean) / std)
    yt, ye = torch.from_numpy(y[train_idx]), torch.from_numpy(y[test_idx])
    net = PlantNet(x.shape[1], n_out)
    opt = make_optimizer(net, OPTIONS)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        net.train()
        tot = 0.0
        for idx in torch.randperm(len(xt)).split(BATCH):
            loss = loss_fn(net(xt[idx]), yt[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * len(idx)
    net.eval()
    with torch.no_grad():
        acc = (net(xe).argmax(1) == ye).float().mean().item()
        train_acc = (net(xt).argmax(1) == yt).float().mean().item()
    return tot / len(xt), train_acc, acc


def main():
    np.random.seed(0)
    torch.manual_seed(0)
    x, y, names = read("plants.csv")
    print("rows", len(y), {n: int((y == k).sum()) for k, n in enumerate(names)}, file=sys.stderr)
    parts = np.array_split(np.random.permutation(len(y)), FOLDS)
    scores = []
    for k in range(FOLDS):
        train_idx = np.concatenate([p for j, p in enumerate(parts) if j != k])
        loss, train_acc, acc = fit_fold(x, y, train_idx, parts[k], len(names))
        scores.append(acc)
        print(f"fold {k + 1}: train loss {loss:.3f}  train acc {train_acc:.3f}  held-out acc {acc:.3f}", flush=True)
    print(f"mean {np.mean(scores):.3f} +- {np.std(scores):.3f}")


if __name__ == "__main__":
    main()
