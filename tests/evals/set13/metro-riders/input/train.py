import argparse, os
import numpy as np
import torch
from torch import nn

ap = argparse.ArgumentParser()
ap.add_argument("--until", type=int, default=14, help="stop after this epoch (queue limit), schedule is always the full one")
ap.add_argument("--resume")
a = ap.parse_args()
TOTAL, BS, CTX, LR = 14, 64, 48, 4e-3
torch.manual_seed(10); torch.set_num_threads(1)
y = torch.from_numpy(np.load("gate_counts.npy"))
cut = int(0.85 * len(y))
mu, sd = y[:cut].mean(), y[:cut].std()
z = (y - mu) / sd
hour = torch.arange(len(y)) % 24 * (2 * np.pi / 24)
week = torch.arange(len(y)) % 168 * (2 * np.pi / 168)
F = torch.stack([z, hour.sin(), hour.cos(), week.sin(), week.cos()], 1)


class Riders(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.rnn = nn.GRU(5, d, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(d, 1)
        self.register_buffer("scale", torch.tensor([mu, sd]), persistent=False)

    def forward(self, x):
        return self.out(self.drop(self.rnn(x)[0][:, -1]))[:, 0]


def windows(ends):
    return torch.stack([F[e - CTX:e] for e in ends]), z[ends]


train_ends, val_ends = torch.arange(CTX, cut, 2), torch.arange(cut + CTX, len(y))
net = Riders()
opt = torch.optim.AdamW(net.parameters(), LR, weight_decay=1e-3)
spe = -(-len(train_ends) // BS)
sch = torch.optim.lr_scheduler.OneCycleLR(opt, LR, total_steps=TOTAL * spe)
gen = torch.Generator().manual_seed(77)
first, best = 1, float("inf")
if a.resume:
    ck = torch.load(a.resume, weights_only=False)
    print(net.load_state_dict(ck["net"], strict=False))
    opt.load_state_dict(ck["opt"]); sch.load_state_dict(ck["sch"])
    gen.set_state(ck["gen"]); torch.set_rng_state(ck["torch_rng"])
    first, best = ck["epoch"] + 1, ck["best"]
    print(f"continuing with epoch {first}, lr {sch.get_last_lr()[0]:.2e}, best so far {best:.1f}")
xv, tv = windows(val_ends)
for ep in range(first, a.until + 1):
    net.train(); tot = 0.0
    for b in train_ends[torch.randperm(len(train_ends), generator=gen)].split(BS):
        x, t = windows(b)
        loss = nn.functional.huber_loss(net(x), t, delta=0.5)
        opt.zero_grad(); loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step(); sch.step(); tot += loss.item()
    net.eval()
    with torch.no_grad():
        mae = ((net(xv) - tv).abs().mean() * net.scale[1]).item()
    best = min(best, mae)
    print(f"epoch {ep:2d}/{TOTAL} lr {sch.get_last_lr()[0]:.1e} loss {tot/spe:.4f} val MAE {mae:.1f} riders/h (best {best:.1f})", flush=True)
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "sch": sch.state_dict(), "gen": gen.get_state(),
                "torch_rng": torch.get_rng_state(), "epoch": ep, "best": best}, "last.pt.tmp")
    os.replace("last.pt.tmp", "last.pt")
