"""Day-ahead wind power with a small GRU; snapshot ensemble from cosine cycles with warm restarts."""
import json

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

with open("settings.json") as fh:
    S = json.load(fh)


class Net(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.rnn = nn.GRU(inputs, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1]).squeeze(-1)


def windows(series, start, stop, length):
    idx = np.arange(start + length, stop)
    x = np.stack([series[i - length:i] for i in idx])
    return torch.from_numpy(x), torch.from_numpy(series[idx, 0])


def main():
    torch.manual_seed(S["seed"])
    raw = np.loadtxt("farm.csv", delimiter=",", skiprows=1, dtype=np.float32)
    cut = int(len(raw) * 0.75)
    series = (raw - raw[:cut].mean(0)) / raw[:cut].std(0)
    x, y = windows(series, 0, cut, S["window"])
    xv, yv = windows(series, cut, len(raw), S["window"])
    net = Net(raw.shape[1], S["hidden"])
    opt = torch.optim.SGD(net.parameters(), lr=S["lr_max"], momentum=0.9)
    per_cycle = S["epochs_per_cycle"]
    sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=per_cycle, eta_min=S["lr_min"])
    print(f"{len(x)} windows, {len(xv)} for validation, {S['cycles']} cycles of {per_cycle} epochs", flush=True)
    snapshots = []
    for epoch in range(S["cycles"] * per_cycle):
        net.train()
        total, lr = 0.0, opt.param_groups[0]["lr"]
        for idx in torch.randperm(len(x)).split(S["batch"]):
            loss = F.mse_loss(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        net.eval()
        with torch.no_grad():
            pred = net(xv)
        print(f"epoch {epoch:2d}  lr {lr:.4f}  train mse {total / len(x):.4f}  val mse {F.mse_loss(pred, yv).item():.4f}", flush=True)
        if (epoch + 1) % per_cycle == 0:
            snapshots.append(pred)
            ens = F.mse_loss(torch.stack(snapshots).mean(0), yv).item()
            print(f"  snapshot {len(snapshots)}  ensemble val mse {ens:.4f}", flush=True)


if __name__ == "__main__":
    main()
