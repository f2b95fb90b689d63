import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def rss_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2 ** 20


class RunningMean:
    """Exponential mean with bias correction, for the progress line."""

    def __init__(self, beta=0.98):
        self.beta, self.t, self.acc = beta, 0, 0.0

    def update(self, v):
        self.t += 1
        self.acc = self.beta * self.acc + (1 - self.beta) * v

    @property
    def value(self):
        return float(self.acc) / (1 - self.beta ** self.t)


class Denoiser(nn.Module):
    def __init__(self, width=256, depth=4):
        super().__init__()
        dims = [128] + [width] * depth
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(dims, dims[1:])])
        self.out = nn.Linear(width, 128)

    def forward(self, x):
        h = x
        for l in self.layers:
            h = F.silu(l(h))
        return x + self.out(h)


def batch(n, basis):
    clean = torch.randn(n, basis.size(0)) @ basis
    return clean + 0.5 * torch.randn_like(clean), clean


def main():
    torch.manual_seed(0)
    basis = torch.randn(8, 128) / 3
    net = Denoiser()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    meters = {"mse": RunningMean(), "psnr": RunningMean()}
    held = batch(256, basis)
    cache = {}
    start = rss_mb()
    t0 = time.time()
    for step in range(1, 201):
        noisy, clean = batch(256, basis)
        out = net(noisy)
        mse = F.mse_loss(out, clean)
        opt.zero_grad()
        mse.backward()
        opt.step()
        meters["mse"].update(mse.item())
        net.eval()
        probe = F.mse_loss(net(held[0]), held[1])
        net.train()
        meters["psnr"].update(-10 * torch.log10(probe))
        cache["last"] = (noisy, out.detach())
        if step % 20 == 0:
            print(f"step={step} mse={meters['mse'].value:.4f} psnr={meters['psnr'].value:.2f} rss=+{rss_mb() - start:.0f}MB "
                  f"elapsed={time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
