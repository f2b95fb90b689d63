"""WGAN-GP on a ring of eight Gaussians."""
import argparse
import math

import torch
from torch import nn


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=600, help="generator updates")
    p.add_argument("--n-critic", type=int, default=3)
    p.add_argument("--gp", type=float, default=1.0)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--zdim", type=int, default=8)
    return p.parse_args()


def ring(n):
    k = torch.randint(0, 8, (n,))
    angle = k * math.pi / 4
    return torch.stack([angle.cos(), angle.sin()], 1) * 2 + 0.15 * torch.randn(n, 2)


def net(d_in, d_out, width=64):
    return nn.Sequential(nn.Linear(d_in, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, d_out))


def penalty(critic, real, fake):
    u = torch.rand(len(real), 1)
    mid = (u * real + (1 - u) * fake).requires_grad_(True)
    score = critic(mid)
    slope, = torch.autograd.grad(score.sum(), mid, create_graph=True)
    return (slope.norm(2, dim=1) - 1).pow(2).mean()


@torch.no_grad()
def sliced_w1(a, b, n_dir=64):
    angle = torch.rand(n_dir) * math.pi
    d = torch.stack([angle.cos(), angle.sin()])
    return ((a @ d).sort(0).values - (b @ d).sort(0).values).abs().mean().item()


@torch.no_grad()
def modes(x):
    angle = torch.arange(8) * math.pi / 4
    c = torch.stack([angle.cos(), angle.sin()], 1) * 2
    d, k = torch.cdist(x, c).min(1)
    close = d < 0.5
    return k[close].unique().numel(), close.float().mean().item()


def main():
    args = parse_args()
    torch.manual_seed(12)
    gen, critic = net(args.zdim, 2), net(2, 1)
    opt_g = torch.optim.Adam(gen.parameters(), lr=args.lr, betas=(0.0, 0.9))
    opt_c = torch.optim.Adam(critic.parameters(), lr=args.lr, betas=(0.0, 0.9))
    print(f"{'step':>5} {'critic':>9} {'gen':>9} {'gp':>8} | {'SW1':>7} {'modes':>5} {'close':>6}")
    for step in range(1, args.steps + 1):
        for _ in range(args.n_critic):
            real = ring(args.batch)
            fake = gen(torch.randn(args.batch, args.zdim)).detach()
            gp = penalty(critic, real, fake)
            loss_c = critic(fake).mean() - critic(real).mean() + args.gp * gp
            opt_c.zero_grad()
            loss_c.backward()
            opt_c.step()
        loss_g = -critic(gen(torch.randn(args.batch, args.zdim))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        if step % 50 == 0 or step == 1:
            with torch.no_grad():
                x = gen(torch.randn(2000, args.zdim))
            m, close = modes(x)
            print(f"{step:5d} {loss_c.item():9.4f} {loss_g.item():9.4f} {gp.item():8.4f} | {sliced_w1(x, ring(2000)):7.4f} {m:3d}/8 {close:6.2f}")


if __name__ == "__main__":
    main()
