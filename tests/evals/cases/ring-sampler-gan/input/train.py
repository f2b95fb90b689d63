"""Small GAN that learns a ring of phase-space points; used as a fast sampler."""
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def ring(n):
    ang = 2 * torch.pi * torch.rand(n)
    r = 1 + 0.15 * torch.randn(n)
    return torch.stack([r * ang.cos(), r * ang.sin()], 1)


def net(i, o, width=64):
    return nn.Sequential(nn.Linear(i, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, o))


def stats(gen):
    with torch.no_grad():
        s = gen(torch.randn(4000, 4))
    r = s.norm(dim=1)
    octant = ((torch.atan2(s[:, 1], s[:, 0]) + torch.pi) / (2 * torch.pi) * 8).long().clamp(0, 7)
    share = torch.bincount(octant, minlength=8) / len(s)
    return f"radius {r.mean():.3f}+-{r.std():.3f} octant share min {share.min():.3f} max {share.max():.3f}"


def main(steps=2400, batch=128):
    gen, disc = net(4, 2), net(2, 1)
    g_opt = torch.optim.Adam(gen.parameters(), lr=5e-4, betas=(0.5, 0.9))
    d_opt = torch.optim.Adam(disc.parameters(), lr=5e-4, betas=(0.5, 0.9))
    decay = [torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.02, total_iters=steps) for o in (g_opt, d_opt)]
    print("target: radius 1.000+-0.150, octant share 0.125")
    for step in range(1, steps + 1):
        real = ring(batch)
        fake = gen(torch.randn(batch, 4))
        x = real.clone().requires_grad_(True)
        d_real = disc(x)
        (grad,) = torch.autograd.grad(d_real.sum(), x, create_graph=True)
        penalty = 0.5 * 0.3 * grad.pow(2).sum(1).mean()
        d_fake = disc(fake.detach())
        d_loss = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
        d_opt.zero_grad()
        (d_loss + penalty).backward()
        d_opt.step()

        g_loss = F.softplus(-disc(fake)).mean()
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
        for sched in decay:
            sched.step()
        if step == 1 or step % 300 == 0:
            print(f"{step:5d}  D {d_loss.item():.4f}  G {g_loss.item():.4f}  {stats(gen)}")


if __name__ == "__main__":
    main()
