"""Small hinge GAN on 1-D light curves of variable stars."""
import argparse
import json
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm as sn

ap = argparse.ArgumentParser()
ap.add_argument("--iters", type=int, default=900)
ap.add_argument("--z", type=int, default=6)
ap.add_argument("--lr-g", type=float, default=5e-4)
ap.add_argument("--lr-d", type=float, default=1e-3)
ap.add_argument("--bs", type=int, default=64)
LEN = 24


class Gen(nn.Module):
    def __init__(self, z):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(z, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, LEN))

    def forward(self, z):
        return self.net(z)


class Disc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(sn(nn.Linear(LEN, 64)), nn.LeakyReLU(0.2), sn(nn.Linear(64, 64)), nn.LeakyReLU(0.2),
                                 sn(nn.Linear(64, 1)))

    def forward(self, x):
        return self.net(x).squeeze(1)


def curves(n, g):
    t = torch.linspace(0, 1, LEN)
    ph, amp = torch.rand(n, 1, generator=g), 0.6 + 0.4 * torch.rand(n, 1, generator=g)
    return amp * torch.sin(2 * torch.pi * (t + ph)) + 0.05 * torch.randn(n, LEN, generator=g)


def sliced_distance(a, b, proj):
    return ((a @ proj).sort(0).values - (b @ proj).sort(0).values).abs().mean().item()


def main():
    a = ap.parse_args()
    torch.manual_seed(3)
    g = torch.Generator().manual_seed(5)
    G, D = Gen(a.z), Disc()
    og = torch.optim.Adam(G.parameters(), a.lr_g, betas=(0.5, 0.9))
    od = torch.optim.Adam(D.parameters(), a.lr_d, betas=(0.5, 0.9))
    proj = F.normalize(torch.randn(LEN, 64), dim=0)
    ref, zref = curves(512, g), torch.randn(512, a.z)
    out = open("metrics.jsonl", "w")
    for i in range(1, a.iters + 1):
        real, fake = curves(a.bs, g), G(torch.randn(a.bs, a.z))
        sr, sf = D(real), D(fake.detach())
        ld = F.relu(1 - sr).mean() + F.relu(1 + sf).mean()
        od.zero_grad()
        ld.backward()
        od.step()
        lg = -D(G(torch.randn(a.bs, a.z))).mean()
        og.zero_grad()
        lg.backward()
        og.step()
        if i % 30 == 0:
            rec = dict(it=i, loss_D=round(ld.item(), 4), loss_G=round(lg.item(), 4), D_real=round(sr.mean().item(), 4),
                       D_fake=round(sf.mean().item(), 4))
            if i % 90 == 0:
                with torch.no_grad():
                    rec["swd"] = round(sliced_distance(G(zref), ref, proj), 4)
            out.write(json.dumps(rec) + "\n")
            print("  ".join(f"{k}={v}" for k, v in rec.items()))


if __name__ == "__main__":
    main()
