"""P-wave arrival picker on synthetic three component traces. Long runs are split into jobs:

    python train.py --epochs 2
    python train.py --epochs 9 --resume runs/last.pt
"""
import argparse
import logging
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
from ckpt import save, restore

logging.basicConfig(level=logging.INFO, format="[%(levelname).1s %(name)s] %(message)s")
log = logging.getLogger("picker")
T = 128


def traces(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = 0.8 * torch.randn(n, 3, T, generator=g)
    onset = torch.randint(16, T - 24, (n,), generator=g)
    t = torch.arange(T).float()
    for i in range(n):
        d = t - onset[i]
        f = 0.5 + 0.5 * torch.rand(1, generator=g)
        amp = 0.5 + 1.2 * torch.rand(3, 1, generator=g)
        wave = torch.sin(f * d) * torch.exp(-d.clamp(min=0) / 14) * (d >= 0)
        x[i] += amp * wave
    return x, onset


class Picker(nn.Module):
    def __init__(self, ch=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(3, ch, 7, padding=3), nn.BatchNorm1d(ch), nn.ReLU(),
            nn.Conv1d(ch, ch, 7, padding=3), nn.BatchNorm1d(ch), nn.ReLU(),
            nn.Conv1d(ch, ch, 7, padding=9, dilation=3), nn.BatchNorm1d(ch), nn.ReLU())
        self.head = nn.Conv1d(ch, 1, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(1)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    model.train()
    hit = ((out.argmax(1) - y).abs() <= 3).float().mean().item()
    return F.cross_entropy(out, y).item(), hit


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--lr", type=float, default=3e-4)
    ap.add_argument("--resume")
    ap.add_argument("--run-dir", default="runs")
    args = ap.parse_args()
    os.makedirs(args.run_dir, exist_ok=True)

    torch.manual_seed(0)
    xtr, ytr = traces(1600, 1)
    xva, yva = traces(400, 2)
    model = Picker()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=30)
    start = 0
    if args.resume:
        start = restore(args.resume, model, opt, sched)
        log.info("resumed %s at epoch %d, lr %.2e, optimizer step %d", args.resume, start, opt.param_groups[0]["lr"],
                 int(next(iter(opt.state.values()))["step"]))
        log.info("val before training: loss %.4f hit %.3f", *evaluate(model, xva, yva))

    for epoch in range(start, args.epochs):
        torch.manual_seed(100 + epoch)
        total = 0.0
        for idx in torch.randperm(len(xtr)).split(64):
            loss = F.cross_entropy(model(xtr[idx]), ytr[idx])
            opt.zero_grad()
            loss.backward()
            gn = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        vl, hit = evaluate(model, xva, yva)
        log.info("epoch %2d train %.4f val %.4f hit@3 %.3f lr %.2e gnorm %.2f", epoch, total / len(xtr), vl, hit, sched.get_last_lr()[0], gn)
        save(os.path.join(args.run_dir, "last.pt"), model, opt, sched, epoch + 1)


if __name__ == "__main__":
    main()
