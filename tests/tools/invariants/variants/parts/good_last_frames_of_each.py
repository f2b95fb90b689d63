import numpy as np
import torch
from torch import nn

HELD = 50


def load(name):
    z = np.load(f"runs/{name}.npz")
    return torch.from_numpy(z["pos"]).float(), torch.from_numpy(z["heat"]).float()


runs = {k: load(k) for k in ("a", "b", "c")}
net = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for epoch in range(30):
    work = []
    for k, (pos, heat) in runs.items():
        work += [(k, b) for b in torch.randperm(len(pos) - HELD).split(16)]
    for k, b in work:
        pos, heat = runs[k]
        loss = nn.functional.mse_loss(net(pos[b])[:, 0], heat[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        err = {k: (net(p[-HELD:])[:, 0] - h[-HELD:]).abs().mean().item() for k, (p, h) in runs.items()}
    print(f"epoch {epoch} val error " + " ".join(f"{k}={v:.3f}" for k, v in err.items()))
