import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def gait_windows(n, g):
    """Accelerometer windows, 24 samples, of 48 kinds of movement."""
    kind = torch.randint(0, 48, (n,), generator=g)
    t = torch.arange(24).float() / 24
    f = (1 + kind % 4).float()[:, None]
    amp = (0.6 + 0.5 * (kind // 4 % 3)).float()[:, None]
    x = amp * torch.sin(2 * math.pi * f * t) + 0.4 * (kind // 12 - 1.5).float()[:, None]
    return x + 0.05 * torch.randn(n, 24, generator=g)


class Quantizer(nn.Module):
    def __init__(self, size, dim, beta=0.25):
        super().__init__()
        self.table = nn.Embedding(size, dim)
        nn.init.uniform_(self.table.weight, -1 / size, 1 / size)
        self.beta = beta

    def forward(self, z):
        d = torch.cdist(z, self.table.weight)
        code = d.argmin(1)
        q = self.table(code)
        loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), code, loss


class Tokenizer(nn.Module):
    def __init__(self, codes=64, dim=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, dim))
        self.vq = Quantizer(codes, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 24))

    def forward(self, x):
        q, code, vq_loss = self.vq(self.encoder(x))
        return self.decoder(q), code, vq_loss


def perplexity(code, size):
    p = code.bincount(minlength=size).float() / len(code)
    return torch.exp(-(p[p > 0] * p[p > 0].log()).sum()).item()


def main(a):
    g = torch.Generator().manual_seed(a.seed)
    torch.manual_seed(a.seed)
    data, held = gait_windows(4000, g), gait_windows(800, g)
    net = Tokenizer(a.codes)
    opt = torch.optim.Adam([
        {"params": net.encoder.parameters(), "lr": a.lr},
        {"params": net.decoder.parameters(), "lr": a.lr},
    ])
    print("step,rec,vq,perplexity,used,heldout_rec")
    for step in range(a.steps + 1):
        x = data[torch.randint(0, len(data), (128,), generator=g)]
        rec, code, vq = net(x)
        rec_loss = F.mse_loss(rec, x)
        opt.zero_grad()
        (rec_loss + vq).backward()
        opt.step()
        if step % 200 == 0:
            with torch.no_grad():
                r, c, _ = net(held)
            print(f"{step},{rec_loss.item():.4f},{vq.item():.4f},{perplexity(c, a.codes):.2f},{c.unique().numel()},{F.mse_loss(r, held).item():.4f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1600)
    ap.add_argument("--codes", type=int, default=64)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--seed", type=int, default=0)
    main(ap.parse_args())
