"""Linear probe on the frozen vibration encoder.

encoder.pt comes from the pretraining job (pretrain.log); signals.npz is the new, equally scaled set of 500 windows.
"""
import argparse

import numpy as np
import torch
from torch import nn

from encoder import Encoder

parser = argparse.ArgumentParser()
parser.add_argument("--encoder", default="encoder.pt")
parser.add_argument("--data", default="signals.npz")
parser.add_argument("--epochs", type=int, default=60)
parser.add_argument("--batch", type=int, default=50)
parser.add_argument("--lr", type=float, default=1e-2)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

with np.load(args.data) as f:
    x = torch.from_numpy(f["x"].astype(np.float32))
    y = torch.from_numpy(f["y"].astype(np.int64))
train_x, train_y, val_x, val_y = x[:300], y[:300], x[300:], y[300:]
print(f"windows: train {len(train_x)} val {len(val_x)}, mean {x.mean():.3f} std {x.std():.3f}, classes {y.bincount().tolist()}")

encoder = Encoder()
print("encoder:", encoder.load_state_dict(torch.load(args.encoder, weights_only=True)))
encoder.requires_grad_(False).eval()
head = nn.Linear(encoder.dim, 5)
opt = torch.optim.AdamW(head.parameters(), lr=args.lr, weight_decay=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs * (len(train_x) // args.batch))

with torch.no_grad():
    z, z_val = encoder(train_x), encoder(val_x)

for epoch in range(1, args.epochs + 1):
    order = torch.randperm(len(z))
    total, hits = 0.0, 0
    for idx in order.split(args.batch):
        logits = head(z[idx])
        loss = nn.functional.cross_entropy(logits, train_y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        total += loss.item() * len(idx)
        hits += (logits.argmax(1) == train_y[idx]).sum().item()
    if epoch % 5 == 0 or epoch == 1:
        with torch.no_grad():
            out = head(z_val)
        print(f"epoch {epoch:2d}  train loss {total / len(z):.4f} acc {hits / len(z):.3f}  "
              f"val loss {nn.functional.cross_entropy(out, val_y):.4f} acc {(out.argmax(1) == val_y).float().mean():.3f}")
