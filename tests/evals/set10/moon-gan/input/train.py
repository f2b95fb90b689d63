"""A small GAN on two moons, as a sanity check of our training loop."""
import copy
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn, optim

SEED, ITERS, BATCH, ZDIM = 1, 2400, 128, 4
torch.manual_seed(SEED)


def moons(n):
    t = math.pi * torch.rand(n)
    upper = torch.stack([t.cos(), t.sin()], 1)
    lower = torch.stack([1 - t.cos(), 0.5 - t.sin()], 1)
    pick = (torch.rand(n, 1) < 0.5).float()
    p = pick * upper + (1 - pick) * lower + 0.06 * torch.randn(n, 2)
    return (p - torch.tensor([0.5, 0.25])) * 1.4


def mlp(*dims):
    mods = []
    for a, b in zip(dims[:-2], dims[1:-1]):
        mods += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*mods, nn.Linear(dims[-2], dims[-1]))


def energy(a, b):
    off = lambda m: torch.cdist(m, m).sum() / (len(m) * (len(m) - 1))
    return (2 * torch.cdist(a, b).mean() - off(a) - off(b)).item()


G, D = mlp(ZDIM, 64, 64, 64, 2), mlp(2, 64, 64, 64, 1)
G_avg = copy.deepcopy(G).requires_grad_(False)
g_opt = optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.99))
d_opt = optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.99))
ref, ref2 = moons(1500), moons(1500)
z_fix = torch.randn(1500, ZDIM)
print('energy distance between two real samples: %.4f   ln 2 = %.3f' % (energy(ref, ref2), math.log(2)))
print('%6s %8s %8s %8s %8s %9s' % ('iter', 'd_loss', 'g_loss', 'D(real)', 'D(fake)', 'energy'))

sums = torch.zeros(4)
for it in range(1, ITERS + 1):
    # discriminator
    real = moons(BATCH).requires_grad_(True)
    with torch.no_grad():
        fake = G(torch.randn(BATCH, ZDIM))
    d_real, d_fake = D(real), D(fake)
    d_loss = 0.5 * (F.softplus(-d_real).mean() + F.softplus(d_fake).mean())
    grad, = torch.autograd.grad(d_real.sum(), real, create_graph=True)
    penalty = 0.1 * grad.pow(2).sum(1).mean()
    d_opt.zero_grad()
    (d_loss + penalty).backward()
    d_opt.step()

    # generator; D collects gradients here too, they are cleared above before the next D step
    g_loss = F.softplus(-D(G(torch.randn(BATCH, ZDIM)))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    with torch.no_grad():
        for p, q in zip(G_avg.parameters(), G.parameters()):
            p.mul_(0.995).add_(q, alpha=0.005)

    sums += torch.tensor([d_loss.item(), g_loss.item(), d_real.sigmoid().mean().item(), d_fake.sigmoid().mean().item()])
    if it % 200 == 0:
        m = (sums / 200).tolist()
        print('%6d %8.4f %8.4f %8.3f %8.3f %9.4f' % (it, *m, energy(G_avg(z_fix), ref)))
        sys.stdout.flush()
        sums.zero_()
