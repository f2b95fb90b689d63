"""Denoising auto-encoder, fp16 autocast with dynamic loss scaling."""
from dataclasses import dataclass
import torch
import torch.nn as nn


@dataclass
class Run:
    dim: int = 64
    code: int = 12
    lr: float = 2e-3
    batch: int = 64
    steps: int = 600
    init_scale: float = 2.0 ** 24
    growth_interval: int = 150


class DAE(nn.Module):
    def __init__(self, r):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(r.dim, 96), nn.SiLU(), nn.Linear(96, r.code))
        self.h = nn.Sequential(nn.Linear(r.code, 96), nn.SiLU(), nn.Linear(96, r.dim))

    def forward(self, x):
        return self.h(self.f(x))


def spectra(n, r, g, basis):
    z = torch.rand(n, 5, generator=g)
    return torch.sin(3 * z @ basis)


def main(r=Run()):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(2)
    basis = torch.randn(5, r.dim, generator=g)
    net = DAE(r)
    opt = torch.optim.AdamW(net.parameters(), lr=r.lr)
    scaler = torch.amp.GradScaler("cpu", init_scale=r.init_scale, growth_interval=r.growth_interval)
    skipped = 0
    for s in range(1, r.steps + 1):
        clean = spectra(r.batch, r, g, basis)
        with torch.autocast("cpu", dtype=torch.float16):
            out = net(clean + 0.2 * torch.randn(clean.shape, generator=g))
        l2 = nn.functional.mse_loss(out.float(), clean)
        opt.zero_grad()
        scaler.scale(l2).backward()
        before = scaler.get_scale()
        scaler.step(opt)
        scaler.update()
        if scaler.get_scale() < before:
            skipped += 1
            print(f"[amp] step {s}: gradient overflow, skipping update, reducing loss scale to {scaler.get_scale():.1f}")
        if s % 20 == 0:
            print(f"step {s}/{r.steps} l2 {l2.item():.5f} loss_scale {scaler.get_scale():.0f} skipped_total {skipped}")


if __name__ == "__main__":
    main()
