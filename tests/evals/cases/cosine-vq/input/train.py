import argparse
import csv
import math

import torch
import torch.nn.functional as F
from torch import nn


def knots(n, classes=40, length=32):
    """Smooth closed curves drawn from a fixed family plus jitter."""
    g = torch.Generator().manual_seed(77)
    amp = torch.randn(classes, 4, 2, generator=g) / (1 + torch.arange(4.0))[None, :, None]
    k = torch.randint(0, classes, (n,))
    t = torch.linspace(0, 2 * math.pi, length)
    basis = torch.stack([torch.sin((j + 1) * t) for j in range(4)])
    cos = torch.stack([torch.cos((j + 1) * t) for j in range(4)])
    xy = torch.einsum("nj,jl->nl", amp[k, :, 0], basis) + torch.einsum("nj,jl->nl", amp[k, :, 1], cos)
    return xy + 0.05 * torch.randn(n, length)


class CosineCodebook(nn.Module):
    """Look-up by cosine similarity (ViT-VQGAN, section 3.2: l2-normalised, low-dimensional codes)."""

    def __init__(self, size, dim, beta):
        super().__init__()
        self.table = nn.Embedding(size, dim)
        self.table.weight.data.normal_(0, 1.0)
        self.beta, self.size = beta, size

    def forward(self, z):
        z = F.normalize(z, dim=-1)
        sim = z @ self.table.weight.t()
        idx = sim.argmax(-1)
        q = F.normalize(self.table(idx), dim=-1)
        vq = (q - z.detach()).pow(2).sum(-1).mean() + self.beta * (q.detach() - z).pow(2).sum(-1).mean()
        return z + (q - z).detach(), idx, vq


class CurveVQ(nn.Module):
    def __init__(self, size=128, dim=8, beta=0.25, length=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(length, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU(), nn.Linear(64, 3 * dim))
        self.codebook = CosineCodebook(size, dim, beta)
        self.dec = nn.Sequential(nn.Linear(3 * dim, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU(), nn.Linear(64, length))
        self.dim = dim

    def forward(self, x):
        z = self.enc(x).view(len(x), 3, self.dim)
        q, idx, vq = self.codebook(z)
        return self.dec(q.flatten(1)), idx, vq


def usage(idx, size):
    p = torch.bincount(idx.flatten(), minlength=size).float()
    p = p / p.sum()
    return (p > 0).sum().item(), torch.exp(-(p * (p + 1e-10).log()).sum()).item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=800)
    ap.add_argument("--size", type=int, default=128)
    ap.add_argument("--lr", type=float, default=1e-3)
    ns = ap.parse_args()
    torch.manual_seed(20)
    vqvae = CurveVQ(ns.size)
    optim = torch.optim.Adam(vqvae.parameters(), ns.lr)
    out = csv.writer(open("metrics.csv", "w"))
    out.writerow(["step", "recon", "vq", "active", "perplexity", "table_norm_min", "table_norm_max"])
    for step in range(1, ns.steps + 1):
        x = knots(128)
        recon, idx, vq = vqvae(x)
        rec = F.mse_loss(recon, x)
        optim.zero_grad()
        (rec + vq).backward()
        optim.step()
        if step % 50 == 0:
            with torch.no_grad():
                xe = knots(1024)
                re, ie, _ = vqvae(xe)
                n, ppl = usage(ie, ns.size)
                norms = vqvae.codebook.table.weight.norm(dim=1)
            out.writerow([step, rec.item(), vq.item(), n, ppl, norms.min().item(), norms.max().item()])
            print(f"{step:5d}  rec {rec.item():.4f}  vq {vq.item():.4f}  eval_rec {F.mse_loss(re, xe).item():.4f}  codes {n}/{ns.size}  perplexity {ppl:.1f}")
