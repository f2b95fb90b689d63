"""6-hour-ahead river level forecast.

    python train.py --epochs 10 --lr 0.03
    python train.py --epochs 10 --lr 0.0005 --resume level.pt
"""
import argparse

import torch
from torch import nn

from gauge import level_series, windows


class LevelGRU(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1]).squeeze(-1)


def save(path, net, opt, epoch):
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, path)


def resume(path, net, opt):
    state = torch.load(path)
    net.load_state_dict(state["net"])
    opt.load_state_dict(state["opt"])
    return state["epoch"]


def fit_epoch(net, opt, x, y, batch):
    net.train()
    total = 0.0
    for idx in torch.randperm(len(x)).split(batch):
        loss = nn.functional.mse_loss(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        total += loss.item() * len(idx)
    return total / len(x)


@torch.no_grad()
def rmse(net, x, y):
    net.eval()
    return (net(x) - y).pow(2).mean().sqrt().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--lr", type=float, default=0.03)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--resume")
    ap.add_argument("--out", default="level.pt")
    args = ap.parse_args()

    torch.manual_seed(1 if args.resume is None else 2)
    (x, y), (xv, yv), sd = windows(level_series())
    net = LevelGRU()
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    start = resume(args.resume, net, opt) if args.resume else 0
    print(f"=== {'resume from ' + args.resume if args.resume else 'new run'}: start_epoch={start} "
          f"epochs={args.epochs} lr={args.lr} batch={args.batch} windows={len(x)}/{len(xv)}")
    history = []
    for epoch in range(start + 1, start + args.epochs + 1):
        loss = fit_epoch(net, opt, x, y, args.batch)
        history.append(100 * sd * rmse(net, xv, yv))
        print(f"epoch={epoch} train_mse={loss:.5f} valid_rmse_cm={history[-1]:.3f}", flush=True)
    tail = history[-6:]
    print(f"last six epochs: valid_rmse_cm min={min(tail):.3f} max={max(tail):.3f} swing={max(tail) - min(tail):.3f}")
    save(args.out, net, opt, epoch)


if __name__ == "__main__":
    main()
