import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

parser = argparse.ArgumentParser()
parser.add_argument("--cycles", type=int, default=3)
parser.add_argument("--first", type=int, default=4)
parser.add_argument("--lr", type=float, default=0.4)
args = parser.parse_args()
torch.manual_seed(21)


def spectra(n, g, noise=0.12):
    """Chemical spectra of four compounds; labels of the lab carry some mistakes."""
    base = torch.randn(4, 60, generator=torch.Generator().manual_seed(5))
    y = torch.randint(0, 4, (n,), generator=g)
    x = base[y] + 1.6 * torch.randn(n, 60, generator=g)
    flip = torch.rand(n, generator=g) < noise
    return x, torch.where(flip, torch.randint(0, 4, (n,), generator=g), y)


g = torch.Generator().manual_seed(1)
(xt, yt), (xv, yv) = spectra(1500, g), spectra(500, g, noise=0.0)
net = nn.Sequential(nn.Linear(60, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 4))
opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
sched = CosineAnnealingWarmRestarts(opt, T_0=args.first, T_mult=2, eta_min=1e-4)
epochs = args.first * (2 ** args.cycles - 1)

print(f"{'ep':>3} {'lr':>8} {'train':>8} {'val':>8} {'val acc':>8}")
for ep in range(epochs):
    lr = opt.param_groups[0]["lr"]
    net.train()
    chunks = torch.randperm(len(yt), generator=g).split(50)
    run = 0.0
    for k, i in enumerate(chunks):
        loss = F.cross_entropy(net(xt[i]), yt[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step(ep + (k + 1) / len(chunks))
        run += loss.item() / len(chunks)
    net.eval()
    with torch.no_grad():
        z = net(xv)
        vl, va = F.cross_entropy(z, yv).item(), (z.argmax(1) == yv).float().mean().item()
    print(f"{ep:3d} {lr:8.5f} {run:8.4f} {vl:8.4f} {va:8.3f}")
print("final val acc %.3f" % va)
