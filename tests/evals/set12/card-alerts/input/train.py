"""Card fraud alerts; the positive weight follows the price of a missed fraud against a needless alert."""
import json
from dataclasses import dataclass

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Plan:
    miss_cost: float = 40.0
    alert_cost: float = 1.0
    epochs: int = 12
    batch: int = 128
    lr: float = 4e-3
    seed: int = 80


def cost(pred, y, plan):
    missed = ((pred == 0) & (y == 1)).sum().item()
    alerts = ((pred == 1) & (y == 0)).sum().item()
    return plan.miss_cost * missed + plan.alert_cost * alerts


def main():
    plan = Plan()
    torch.manual_seed(plan.seed)
    acc = Accelerator(cpu=True)
    z = np.load("payments.npz")
    x = torch.from_numpy(z["features"].astype(np.float32))
    y = torch.from_numpy(z["fraud"].astype(np.float32))
    cut = int(0.7 * len(x))
    mean, std = x[:cut].mean(0), x[:cut].std(0)
    x = (x - mean) / std
    xv, yv = x[cut:], y[cut:]
    loader = DataLoader(TensorDataset(x[:cut], y[:cut]), batch_size=plan.batch, shuffle=True)
    net = nn.Sequential(nn.Linear(x.shape[1], 24), nn.ReLU(), nn.Linear(24, 1))
    opt = torch.optim.Adam(net.parameters(), lr=plan.lr)
    net, opt, loader = acc.prepare(net, opt, loader)
    weight = torch.tensor(plan.miss_cost / plan.alert_cost)
    nothing = torch.zeros_like(yv)
    acc.print(f"{cut} payments, fraud rate {y[:cut].mean():.4f}; never alerting: accuracy {(nothing == yv).float().mean():.4f} "
              f"cost {cost(nothing, yv, plan):.0f}", flush=True)
    for epoch in range(plan.epochs):
        net.train()
        total = 0.0
        for xb, yb in loader:
            loss = F.binary_cross_entropy_with_logits(net(xb).squeeze(-1), yb, pos_weight=weight)
            opt.zero_grad()
            acc.backward(loss)
            opt.step()
            total += loss.item() * len(yb)
        net.eval()
        with torch.no_grad():
            pred = (net(xv).squeeze(-1) > 0).float()
        recall = (pred * yv).sum().item() / yv.sum().item()
        acc.print(f"epoch {epoch:2d}  loss {total / cut:.4f}  accuracy {(pred == yv).float().mean():.4f}  recall {recall:.3f}  "
                  f"precision {(pred * yv).sum().item() / max(pred.sum().item(), 1):.3f}  cost {cost(pred, yv, plan):.0f}", flush=True)
    with open("summary.json", "w") as f:
        json.dump({"cost": cost(pred, yv, plan), "recall": recall}, f)


if __name__ == "__main__":
    main()
