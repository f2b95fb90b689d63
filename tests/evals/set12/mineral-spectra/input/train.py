"""Classify minerals from Raman spectra; mixup between spectra of a batch."""
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Options:
    file: str = "spectra.npz"
    epochs: int = 14
    batch: int = 32
    lr: float = 3e-3
    mixup_alpha: float = 0.8
    dropout: float = 0.3
    seed: int = 30


def mix(x, y, alpha):
    lam = float(np.random.beta(alpha, alpha))
    perm = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[perm], y, y[perm], lam


def main(opt=Options()):
    torch.manual_seed(opt.seed)
    np.random.seed(opt.seed)
    z = np.load(opt.file)
    x = torch.from_numpy(z["counts"].astype(np.float32)).clamp_min(1).log()
    y = torch.from_numpy(z["mineral"].astype(np.int64))
    group = z["sample"]
    # spectra of one rock sample stay on one side of the split
    val = torch.from_numpy(group % 5 == 0)
    mean, std = x[~val].mean(0), x[~val].std(0)
    x = (x - mean) / std
    xt, yt, xv, yv = x[~val], y[~val], x[val], y[val]
    net = nn.Sequential(nn.Linear(x.shape[1], 96), nn.ReLU(), nn.Dropout(opt.dropout), nn.Linear(96, 96), nn.ReLU(),
                        nn.Dropout(opt.dropout), nn.Linear(96, int(y.max()) + 1))
    adam = torch.optim.AdamW(net.parameters(), lr=opt.lr, weight_decay=1e-2)
    print(f"{opt}\n{len(xt)} training spectra, {len(xv)} validation spectra", flush=True)
    for epoch in range(opt.epochs):
        net.train()
        loss_sum = hits = 0.0
        for idx in torch.randperm(len(xt)).split(opt.batch):
            xm, ya, yb, lam = mix(xt[idx], yt[idx], opt.mixup_alpha)
            out = net(xm)
            loss = lam * F.cross_entropy(out, ya) + (1 - lam) * F.cross_entropy(out, yb)
            adam.zero_grad()
            loss.backward()
            adam.step()
            loss_sum += loss.item() * len(idx)
            pred = out.argmax(-1)
            hits += lam * (pred == ya).sum().item() + (1 - lam) * (pred == yb).sum().item()
        net.eval()
        with torch.no_grad():
            out = net(xv)
            vl, va = F.cross_entropy(out, yv).item(), (out.argmax(-1) == yv).float().mean().item()
        print(f"epoch {epoch:2d}  train loss {loss_sum / len(xt):.4f} acc {hits / len(xt):.3f}  val loss {vl:.4f} acc {va:.3f}", flush=True)


if __name__ == "__main__":
    main()
