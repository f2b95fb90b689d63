"""Predict bike rentals per hour with a small MLP; patience-based stop, best weights restored."""
import argparse
import copy
import numpy as np
import torch
import torch.nn as nn


def hours(n=3000, seed=11):
    rng = np.random.default_rng(seed)
    h, wd, temp, rain = rng.integers(0, 24, n), rng.integers(0, 7, n), rng.normal(12, 7, n), rng.random(n) < 0.2
    rush = np.exp(-((h - 8) / 1.8) ** 2) + np.exp(-((h - 17.5) / 2.2) ** 2)
    mean = 40 + 260 * rush * (wd < 5) + 110 * np.exp(-((h - 14) / 4) ** 2) * (wd >= 5) + 4 * temp - 60 * rain
    y = np.maximum(0, mean + 40 * rng.normal(size=n))
    x = np.concatenate([np.eye(24)[h], np.eye(7)[wd], (temp[:, None] - 12) / 7, rain[:, None], rng.normal(size=(n, 8))], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor((y - 120) / 100, dtype=torch.float32)


class EarlyStop:
    def __init__(self, patience):
        self.best, self.wait, self.patience, self.state = float("inf"), 0, patience, None

    def __call__(self, value, model):
        if value < self.best - 1e-4:
            self.best, self.wait, self.state = value, 0, copy.deepcopy(model.state_dict())
        else:
            self.wait += 1
        return self.wait >= self.patience


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--max-epochs", type=int, default=200)
    ap.add_argument("--patience", type=int, default=5)
    args = ap.parse_args()
    torch.manual_seed(2)
    x, y = hours()
    xt, yt, xv, yv = x[:2400], y[:2400], x[2400:], y[2400:]
    net = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
    stop = EarlyStop(args.patience)
    for ep in range(1, args.max_epochs + 1):
        net.train()
        acc = 0.0
        for idx in torch.randperm(len(xt)).split(32):
            loss = (net(xt[idx]) - yt[idx]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            acc += loss.item() * len(idx) / len(xt)
        net.eval()
        with torch.no_grad():
            v = (net(xv) - yv).pow(2).mean().item()
        done = stop(v, net)
        print(f"Epoch {ep:05d}: loss {acc:.5f} val_loss {v:.5f} best {stop.best:.5f} patience {stop.wait}/{args.patience}")
        if done:
            print(f"Epoch {ep:05d}: early stopping, restoring weights of the best epoch {ep - stop.wait}")
            break
    net.load_state_dict(stop.state)
    with torch.no_grad():
        print(f"final: val_loss {(net(xv) - yv).pow(2).mean().item():.5f} (target variance {yv.var().item():.3f})")


if __name__ == "__main__":
    main()
