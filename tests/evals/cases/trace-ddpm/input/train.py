import copy
import math

import torch
import torch.nn as nn

from diffusion import NoiseSchedule

LENGTH = 24


def pulses(n):
    """ECG-like traces with random rate, phase and height (standardised)."""
    grid = torch.linspace(0, 1, LENGTH)
    rate, phase, height = 1 + 2 * torch.rand(n, 1), torch.rand(n, 1), 0.8 + 0.4 * torch.rand(n, 1)
    cyc = (grid * rate + phase) % 1
    return (height * torch.exp(-((cyc - 0.5) / 0.12) ** 2) - 0.2) / 0.35


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        half = dim // 2
        self.register_buffer("freq", torch.exp(-math.log(1000.0) * torch.arange(half) / half))
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        ang = t[:, None].float() * self.freq
        return self.mlp(torch.cat([ang.sin(), ang.cos()], -1))


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.temb = TimeEmbedding(width)
        self.inp = nn.Linear(LENGTH, width)
        self.hidden = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU()) for _ in range(3))
        self.out = nn.Linear(width, LENGTH)

    def forward(self, x, t):
        h, e = self.inp(x), self.temb(t)
        for layer in self.hidden:
            h = h + layer(h + e)
        return self.out(h)


class DDPMTrainer:
    def __init__(self, lr=2e-3, ema=0.995, bs=256):
        self.schedule = NoiseSchedule()
        self.net = Denoiser()
        self.ema_net = copy.deepcopy(self.net).requires_grad_(False)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr)
        self.decay, self.bs = ema, bs

    def step(self):
        x0 = pulses(self.bs)
        t = torch.randint(0, self.schedule.steps, (self.bs,))
        noise = torch.randn_like(x0)
        xt = self.schedule.corrupt(x0, t)
        criterion = nn.functional.mse_loss(self.net(xt, t), noise)
        self.opt.zero_grad()
        criterion.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.opt.step()
        for pe, p in zip(self.ema_net.parameters(), self.net.parameters()):
            pe.lerp_(p.detach(), 1 - self.decay)
        return criterion.item()

    def sample_stats(self, n=256):
        fake, real = self.schedule.generate(self.ema_net, (n, LENGTH)), pulses(n)
        rough = lambda z: z.diff(dim=1).abs().mean().item()
        return fake.std().item(), real.std().item(), rough(fake), rough(real)


if __name__ == "__main__":
    torch.manual_seed(3)
    trainer, window = DDPMTrainer(), []
    print(f"denoiser parameters: {sum(p.numel() for p in trainer.net.parameters()):,}")
    for it in range(1, 601):
        window.append(trainer.step())
        if it % 50 == 0:
            print(f"iteration={it} mse(eps)={sum(window) / len(window):.4f}")
            window.clear()
        if it % 300 == 0:
            fs, rs, fr, rr = trainer.sample_stats()
            print(f"  samples: std {fs:.3f} (data {rs:.3f})  roughness {fr:.3f} (data {rr:.3f})")
