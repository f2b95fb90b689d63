"""DDPM on a 2-D swiss roll. Reports the eps-loss and, every few hundred steps, statistics of drawn samples."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

T = 100
DEVICE = "cpu"


def swiss_roll(n, g=None):
    t = 1.5 * math.pi * (1 + 2 * torch.rand(n, generator=g))
    x = torch.stack([t * torch.cos(t), t * torch.sin(t)], 1) / 7.0
    return x + 0.03 * torch.randn(n, 2, generator=g)


class Diffusion:
    def __init__(self, steps=T, lo=1e-4, hi=0.06):
        self.betas = torch.linspace(lo, hi, steps)
        self.alphas = 1 - self.betas
        self.abar = self.alphas.cumprod(0)

    def q_sample(self, x0, t, eps):
        a = self.abar[t][:, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * eps

    def loss(self, net, x0):
        t = torch.randint(0, T, (len(x0),))
        eps = torch.randn_like(x0)
        return F.mse_loss(net(self.q_sample(x0, t, eps), t / T), eps)

    @torch.no_grad()
    def sample(self, net, n):
        x = torch.randn(n, 2)
        for i in reversed(range(T)):
            t = torch.full((n,), i, dtype=torch.float32)
            eps = net(x, t)
            mean = (x - self.betas[i] / (1 - self.abar[i]).sqrt() * eps) / self.alphas[i].sqrt()
            x = mean + self.betas[i].sqrt() * torch.randn_like(x) if i else mean
        return x


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freq", torch.exp(torch.linspace(0, math.log(40.0), dim // 2)))

    def forward(self, t):
        a = t[:, None] * self.freq
        return torch.cat([a.sin(), a.cos()], 1)


class Denoiser(nn.Module):
    def __init__(self, width=96, dim=16):
        super().__init__()
        self.temb = TimeEmbedding(dim)
        self.net = nn.Sequential(nn.Linear(2 + dim, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.temb(t)], 1))


def energy_distance(a, b):
    d = torch.cdist
    return (2 * d(a, b).mean() - d(a, a).mean() - d(b, b).mean()).item()


def main(steps=3000, bs=256):
    torch.manual_seed(0)
    data, held = swiss_roll(8000), swiss_roll(800)
    net, diff = Denoiser().to(DEVICE), Diffusion()
    ema = Denoiser().to(DEVICE)
    ema.load_state_dict(net.state_dict())
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 2e-3, total_steps=steps)
    run = 0.0
    for s in range(1, steps + 1):
        loss = diff.loss(net, data[torch.randint(len(data), (bs,))])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        with torch.no_grad():
            for p, q in zip(ema.parameters(), net.parameters()):
                p.lerp_(q, 0.01)
        run += loss.item()
        if s % 500 == 0:
            x = diff.sample(ema, 800)
            print(f"step={s:05d} eps_mse={run / 500:.4f} | sample mean=({x[:, 0].mean():+.2f},{x[:, 1].mean():+.2f}) "
                  f"std={x.std():.3f} (data {held.std():.3f}) energy_dist={energy_distance(x, held):.4f}", flush=True)
            run = 0.0


if __name__ == "__main__":
    main()
