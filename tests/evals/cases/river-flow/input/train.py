"""Daily river discharge from rain history (dilated TCN). One JSON object per line."""
import argparse
import json
import math

import numpy as np
import torch
import torch.nn as nn

p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=600)
p.add_argument("--peak", type=float, default=4e-3)
p.add_argument("--anneal-steps", type=int, default=300, help="length of the cosine phase")
p.add_argument("--bs", type=int, default=64)
p.add_argument("--seed", type=int, default=3)
args = p.parse_args()

torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)


def catchment(days=3000):
    rain = rng.gamma(0.3, 6.0, days)
    store, flow = 0.0, []
    for r in rain:
        store = 0.93 * store + 0.3 * r
        flow.append(0.07 * store + 0.02 * max(0.0, r - 8) ** 1.2)
    flow = np.array(flow)
    return np.log1p(rain).astype("float32"), np.log1p(flow * np.exp(0.05 * rng.normal(size=days))).astype("float32")


class TCN(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(1 if i == 0 else ch, ch, 3, dilation=2 ** i) for i in range(4)])
        self.out = nn.Linear(ch, 1)

    def forward(self, x):
        h = x[:, None]
        for c in self.convs:
            h = torch.relu(c(h))
        return self.out(h[..., -1]).squeeze(-1)


def lr_at(step):
    return args.peak * 0.5 * (1 + math.cos(math.pi * step / args.anneal_steps))


rain, flow = catchment()
WINDOW = 40
net = TCN()
opt = torch.optim.RMSprop(net.parameters(), lr=args.peak)
train_end = 2400
xv = torch.from_numpy(np.stack([rain[d - WINDOW:d] for d in range(train_end, 3000)]))
yv = torch.from_numpy(flow[train_end - 1:2999])

for step in range(args.steps):
    days = rng.integers(WINDOW, train_end, args.bs)
    x = torch.from_numpy(np.stack([rain[d - WINDOW:d] for d in days]))
    y = torch.from_numpy(flow[days - 1])
    for grp in opt.param_groups:
        grp["lr"] = lr_at(step)
    huber = nn.functional.huber_loss(net(x), y, delta=0.1)
    opt.zero_grad()
    huber.backward()
    opt.step()
    if (step + 1) % 20 == 0:
        rec = {"s": step + 1, "huber": float(f"{huber.item():.4g}"), "eta": float(f"{lr_at(step):.4g}")}
        if (step + 1) % 60 == 0:
            with torch.no_grad():
                res = net(xv) - yv
                rec["nse"] = round(1 - (res.pow(2).mean() / yv.var()).item(), 4)
        print(json.dumps(rec), flush=True)
