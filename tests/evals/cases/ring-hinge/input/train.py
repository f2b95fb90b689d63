import argparse
import sys
import time

import torch
from torch import nn, optim
from torch.nn.functional import relu


def profiles(n, gen):
    """river cross-sections: 32-point depth curves with a random channel position and depth"""
    s = torch.linspace(-1, 1, 32)
    c = 0.6 * (torch.rand(n, 1, generator=gen) - 0.5)
    w = 0.25 + 0.25 * torch.rand(n, 1, generator=gen)
    d = 0.5 + 0.5 * torch.rand(n, 1, generator=gen)
    return -d * torch.exp(-((s - c) / w) ** 2) + 0.02 * torch.randn(n, 32, generator=gen)


def mlp(*sizes, act):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


class Gan:
    def __init__(self, z=8, lr=5e-4):
        self.z = z
        self.G = mlp(z, 64, 64, 32, act=nn.ReLU)
        self.D = mlp(32, 64, 64, 1, act=lambda: nn.LeakyReLU(0.2))
        self.og = optim.Adam(self.G.parameters(), lr=lr, betas=(0.5, 0.9))
        self.od = optim.Adam(self.D.parameters(), lr=lr, betas=(0.5, 0.9))

    def noise(self, n):
        return torch.randn(n, self.z)

    def critic_step(self, real, fake):
        self.od.zero_grad()
        loss = relu(1 - self.D(real)).mean() + relu(1 + self.D(fake)).mean()
        loss.backward()
        self.od.step()
        return loss.item()

    def gen_step(self, fake):
        self.og.zero_grad()
        score = self.D(fake)
        loss = -score.mean()
        loss.backward()
        self.og.step()
        return loss.item(), score.mean().item()

    def iteration(self, real):
        fake = self.G(self.noise(len(real))).detach()
        d = self.critic_step(real, fake)
        g, s = self.gen_step(fake)
        return d, g, s


def report(gan, real):
    with torch.no_grad():
        x = gan.G(gan.noise(512))
    gap = (x.mean(0) - real.mean(0)).abs().mean().item()
    return gap, x.min(1).values.mean().item(), real.min(1).values.mean().item()


def main(argv):
    ap = argparse.ArgumentParser()
    ap.add_argument("--iters", type=int, default=2400)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--seed", type=int, default=31)
    a = ap.parse_args(argv)
    torch.manual_seed(a.seed)
    data = profiles(4096, torch.Generator().manual_seed(a.seed))
    gan, t0 = Gan(), time.time()
    print("  iter   loss_D   loss_G   D(G(z))   |mean gap|   depth fake / real     sec")
    for it in range(1, a.iters + 1):
        d, g, s = gan.iteration(data[torch.randint(len(data), (a.batch,))])
        if it % 200 == 0:
            gap, fd, rd = report(gan, data)
            print(f"{it:6d} {d:8.4f} {g:8.4f} {s:9.4f} {gap:12.4f}   {fd:10.3f} / {rd:.3f} {time.time() - t0:9.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
