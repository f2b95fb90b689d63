import copy
import math
import time

import torch
import torch.nn as nn

from diffusion import GaussianProcess


def spiral(n):
    r = torch.rand(n).sqrt()
    th = 3.5 * math.pi * r
    return torch.stack([r * th.cos(), r * th.sin()], 1) * 2 + 0.04 * torch.randn(n, 2)


class Denoiser(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.register_buffer("freq", torch.exp(torch.linspace(0, math.log(1000.0), 16)))
        self.inp = nn.Linear(2 + 32, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, 2)

    def forward(self, x, t):
        ph = t.float().unsqueeze(-1) / 100 * self.freq
        h = self.inp(torch.cat([x, ph.sin(), ph.cos()], -1))
        for layer in self.layers:
            h = h + torch.nn.functional.silu(layer(h))
        return self.out(h)


class Ema:
    def __init__(self, module, decay=0.995):
        self.shadow, self.decay = copy.deepcopy(module).requires_grad_(False), decay

    @torch.no_grad()
    def update(self, module):
        for s, p in zip(self.shadow.parameters(), module.parameters()):
            s.lerp_(p, 1 - self.decay)


def chamfer(a, b):
    d = torch.cdist(a, b)
    return 0.5 * (d.amin(0).mean() + d.amin(1).mean()).item()


def main():
    torch.manual_seed(123)
    proc = GaussianProcess(Denoiser())
    ema = Ema(proc)
    opt = torch.optim.AdamW(proc.parameters(), lr=1e-3)
    ref = spiral(1000)
    acc, t0 = 0.0, time.perf_counter()
    for it in range(1, 4001):
        loss = proc.p_losses(spiral(256))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(proc.parameters(), 1.0)
        opt.step()
        ema.update(proc)
        acc += loss.item()
        if it % 400 == 0:
            cd = chamfer(ema.shadow.sample(1000), ref)
            print("iter=%d | eps_mse=%.4f | chamfer=%.4f | it/s=%.0f" % (it, acc / 400, cd, it / (time.perf_counter() - t0)))
            acc = 0.0


if __name__ == "__main__":
    main()
