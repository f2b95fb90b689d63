"""Ground / vegetation / building labels for lidar returns, half precision training."""
import csv
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from monitor import param_norm, true_grad_norm

torch.manual_seed(21)
N, STEPS, BATCH = 8192, 400, 256


def make_points(n):
    y = torch.randint(0, 3, (n,))
    z = torch.randn(n) * 0.4 + torch.tensor([0.0, 1.2, 2.4])[y]
    rough = torch.rand(n) * 0.3 + torch.tensor([0.05, 0.6, 0.1])[y]
    inten = torch.randn(n) * 0.25 + torch.tensor([0.6, 0.2, 0.7])[y]
    returns = torch.where(y == 1, torch.randint(1, 5, (n,)), torch.ones(n, dtype=torch.long)).float()
    noise = torch.randn(n, 8)
    x = torch.cat([torch.stack([z, rough, inten, returns], 1), noise], 1)
    return (x - x.mean(0)) / x.std(0), y


class PointMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(12, 64)
        self.blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64)) for _ in range(3)])
        self.out = nn.Linear(64, 3)

    def forward(self, x):
        h = self.inp(x)
        for b in self.blocks:
            h = h + b(h)
        return self.out(h)


def main():
    x, y = make_points(N)
    xv, yv = make_points(2048)
    model = PointMLP()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, total_iters=30)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 12, growth_interval=200)
    out = csv.writer(sys.stdout)
    out.writerow(["step", "loss", "val_acc", "grad_norm", "param_norm", "scale", "lr"])
    for step in range(STEPS):
        idx = torch.randint(0, N, (BATCH,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        scaler.scale(loss).backward()
        gn = true_grad_norm(model.parameters(), scaler)
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        scaler.step(opt)
        scaler.update()
        sched.step()
        if step % 20 == 0 or step == STEPS - 1:
            with torch.no_grad():
                acc = (model(xv).argmax(1) == yv).float().mean().item()
            out.writerow([step, f"{loss.item():.4f}", f"{acc:.4f}", f"{gn:.4f}", f"{param_norm(list(model.parameters())):.4f}", int(scaler.get_scale()), f"{sched.get_last_lr()[0]:.3f}"])


if __name__ == "__main__":
    main()
