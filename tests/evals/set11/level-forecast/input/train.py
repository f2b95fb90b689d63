"""One forecaster for all gauge stations: rain and level of the last day -> level of the next 4 hours."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader

from dataset import Windows

p = argparse.ArgumentParser()
p.add_argument("--data", default="data")
p.add_argument("--history", type=int, default=24)
p.add_argument("--horizon", type=int, default=4)
p.add_argument("--epochs", type=int, default=5)
p.add_argument("--batch", type=int, default=128)
p.add_argument("--lr", type=float, default=6e-3)
p.add_argument("--hidden", type=int, default=32)
args = p.parse_args()

torch.manual_seed(0)


class Forecaster(nn.Module):
    def __init__(self, hidden, horizon):
        super().__init__()
        self.rnn = nn.GRU(2, hidden, batch_first=True)
        self.out = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, horizon))

    def forward(self, x):
        _, h = self.rnn(x)
        return self.out(h[-1])


train = Windows(args.data, "train", args.history, args.horizon)
val = Windows(args.data, "val", args.history, args.horizon)
train_loader = DataLoader(train, batch_size=args.batch, shuffle=True, drop_last=True)
val_loader = DataLoader(val, batch_size=512)
print(f"stations {train.stations}  windows train {len(train)} val {len(val)}")

model = Forecaster(args.hidden, args.horizon)
opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=args.lr, total_steps=args.epochs * len(train_loader))


@torch.no_grad()
def evaluate():
    model.eval()
    err = torch.zeros(len(val.stations))
    naive = torch.zeros(len(val.stations))
    count = torch.zeros(len(val.stations))
    for x, y, k in val_loader:
        err.index_add_(0, k, (model(x) - y).abs().mean(1))
        naive.index_add_(0, k, y.abs().mean(1))
        count.index_add_(0, k, torch.ones(len(k)))
    return err / count, naive / count


for epoch in range(1, args.epochs + 1):
    model.train()
    total = 0.0
    for x, y, _ in train_loader:
        loss = nn.functional.smooth_l1_loss(model(x), y, beta=0.05)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        total += loss.item()
    err, naive = evaluate()
    per = "  ".join(f"{s} {e * 100:.2f}" for s, e in zip(val.stations, err.tolist()))
    print(f"epoch {epoch:2d}  loss {total / len(train_loader):.5f}  val mae [cm] {err.mean() * 100:.2f} | {per}", flush=True)

print("persistence mae [cm] | " + "  ".join(f"{s} {e * 100:.2f}" for s, e in zip(val.stations, naive.tolist())))
