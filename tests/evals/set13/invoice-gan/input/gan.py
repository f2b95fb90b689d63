import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3); torch.set_num_threads(1)
X = torch.from_numpy(np.load("invoices_std.npy"))
real_train, real_held = X[:3200], X[3200:]
Z, B, STEPS = 8, 128, 2600
G = nn.Sequential(nn.Linear(Z, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
D = nn.Sequential(nn.Linear(3, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
og = torch.optim.Adam(G.parameters(), 1e-3, betas=(0.5, 0.999))
od = torch.optim.Adam(D.parameters(), 1e-3, betas=(0.5, 0.999))
decay = lambda s: 1.0 if s < STEPS // 2 else 2 * (1 - s / STEPS) + 0.02
sg, sd = (torch.optim.lr_scheduler.LambdaLR(o, decay) for o in (og, od))
probe = torch.randn(800, Z, generator=torch.Generator().manual_seed(5))


def sliced(a, b):
    d = F.normalize(torch.randn(3, 50, generator=torch.Generator().manual_seed(6)), dim=0)
    return ((a @ d).sort(0)[0] - (b @ d).sort(0)[0]).abs().mean().item()


print(f"held-out vs. train (floor) {sliced(real_held, real_train[:800]):.4f}")
acc = np.zeros(4)
for step in range(1, STEPS + 1):
    r = real_train[torch.randint(len(real_train), (B,))]
    f = G(torch.randn(B, Z))
    dr, df = D(r), D(f.detach())
    ld = F.softplus(-dr).mean() + F.softplus(df).mean()
    od.zero_grad(); ld.backward(); od.step()
    lg = F.softplus(-D(f)).mean()          # non-saturating
    og.zero_grad(); lg.backward(); og.step()
    sg.step(); sd.step()
    acc += ld.item(), lg.item(), (dr > 0).float().mean().item(), (df < 0).float().mean().item()
    if step % 260 == 0:
        a = acc / 260; acc[:] = 0
        with torch.no_grad():
            s = G(probe)
        near = torch.bincount((torch.atan2(s[:, 1], s[:, 0]) / (2 * np.pi / 5)).round().long() % 5, minlength=5).tolist()
        print(f"{step:5d} D {a[0]:.3f} G {a[1]:.3f} D(real)>0 {a[2]:.2f} D(fake)<0 {a[3]:.2f} sliced-W1 {sliced(s, real_held):.4f} modes {near}", flush=True)
