"""District heating demand, normalised inputs, evaluated on the last winter."""
import argparse
import csv
import numpy as np
import torch
import torch.nn as nn


class Frame:
    def __init__(self, hours=4000, seed=14):
        rng = np.random.default_rng(seed)
        t = np.arange(hours)
        temp = 6 + 9 * np.sin(2 * np.pi * t / 3000) + 4 * np.sin(2 * np.pi * t / 24) + 2 * rng.normal(size=hours)
        wind = rng.gamma(2, 3, hours)
        hour = t % 24
        load = 300 + 14 * np.maximum(0, 17 - temp) + 2 * wind + 60 * np.exp(-((hour - 7) / 3.0) ** 2) + 12 * rng.normal(size=hours)
        self.x = np.stack([temp, wind, np.sin(2 * np.pi * hour / 24), np.cos(2 * np.pi * hour / 24)], 1).astype("float32")
        self.y = load.astype("float32")[:, None]

    def split(self, share=0.75):
        rng = np.random.default_rng(0)
        order = rng.permutation(len(self.x))
        k = int(share * len(order))
        return order[:k], order[k:]


class Scaler:
    def fit(self, a):
        self.mean, self.std = a.mean(0), a.std(0)
        return self

    def __call__(self, a):
        return (a - self.mean) / self.std

    def back(self, a):
        return a * self.std + self.mean


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=15)
    ap.add_argument("--lr", type=float, default=2e-3)
    args = ap.parse_args()
    torch.manual_seed(0)
    frame = Frame()
    tr, ev = frame.split()
    sx, sy = Scaler().fit(frame.x[tr]), Scaler().fit(frame.y[tr])
    xt, yt = torch.from_numpy(sx(frame.x[tr])), torch.from_numpy(sy(frame.y[tr]))
    xe, ye = torch.from_numpy(frame.x[ev]), torch.from_numpy(frame.y[ev])
    net = nn.Sequential(nn.Linear(4, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    with open("metrics.csv", "w", newline="") as fh:
        w = csv.writer(fh, delimiter=";")
        w.writerow(["epoch", "train_rmse_kw", "eval_rmse_kw"])
        for ep in range(1, args.epochs + 1):
            sq = 0.0
            for idx in torch.randperm(len(xt)).split(50):
                mse = (net(xt[idx]) - yt[idx]).pow(2).mean()
                opt.zero_grad()
                mse.backward()
                opt.step()
                sq += mse.item() * len(idx)
            train_kw = (sq / len(xt)) ** 0.5 * float(sy.std[0])
            with torch.no_grad():
                eval_kw = (sy.back(net(xe).numpy()) - ye.numpy()).__pow__(2).mean() ** 0.5
            w.writerow([ep, f"{train_kw:.2f}", f"{eval_kw:.2f}"])
            print(f"{ep:>2}/{args.epochs}  train rmse {train_kw:8.2f} kW   eval rmse {eval_kw:8.2f} kW")


if __name__ == "__main__":
    main()
