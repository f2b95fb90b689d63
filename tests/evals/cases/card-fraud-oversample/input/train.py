"""Card fraud detector. Rare positives are oversampled; final check on next month's data."""
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(10)
torch.manual_seed(10)
FEATURES = 40


def transactions(n, rate=0.03):
    y = (rng.random(n) < rate).astype(np.float32)
    x = rng.standard_normal((n, FEATURES)).astype(np.float32)
    x[:, :5] += 0.7 * y[:, None]
    return x, y


def oversample(x, y, target=0.5):
    pos, neg = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    extra = rng.choice(pos, int(target / (1 - target) * len(neg)), replace=True)
    idx = rng.permutation(np.concatenate([neg, extra]))
    return x[idx], y[idx]


def split(x, y, frac=0.2):
    cut = int(len(x) * (1 - frac))
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def auc(score, y):
    rank = np.empty(len(score))
    rank[score.argsort()] = np.arange(1, len(score) + 1)
    p = y.sum()
    return (rank[y == 1].sum() - p * (p + 1) / 2) / (p * (len(y) - p))


def score(net, x):
    with torch.no_grad():
        return net(torch.from_numpy(x)).squeeze(1).numpy()


def main():
    january, february = transactions(6000), transactions(6000)
    print(f"january: {len(january[1])} rows, {int(january[1].sum())} frauds")
    x, y = oversample(*january)
    (xt, yt), (xv, yv) = split(x, y)
    print(f"train {len(xt)} rows ({yt.mean():.1%} fraud), validation {len(xv)} rows ({yv.mean():.1%} fraud)")
    net = nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    tx, ty = torch.from_numpy(xt), torch.from_numpy(yt)
    for epoch in range(12):
        total = 0.0
        for idx in torch.randperm(len(tx)).split(128):
            loss = nn.functional.binary_cross_entropy_with_logits(net(tx[idx]).squeeze(1), ty[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch:2d}: train loss {total / len(tx):.4f}, validation AUC {auc(score(net, xv), yv):.4f}")
    print(f"february (untouched) AUC {auc(score(net, february[0]), february[1]):.4f}")


if __name__ == "__main__":
    main()
