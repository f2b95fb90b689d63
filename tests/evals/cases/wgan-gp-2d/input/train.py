import argparse
import csv

import torch

from networks import Critic, Generator, two_moons


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(mixed)
    grad, = torch.autograd.grad(
        outputs=scores,
        inputs=mixed,
        grad_outputs=torch.ones_like(scores),
        retain_graph=True,
    )
    slope = grad.flatten(1).norm(2, dim=1)
    return ((slope - 1.0) ** 2).mean(), slope.mean()


@torch.no_grad()
def sliced_distance(a, b, n_proj=64):
    g = torch.Generator().manual_seed(0)
    dirs = torch.nn.functional.normalize(torch.randn(2, n_proj, generator=g), dim=0)
    return ((a @ dirs).sort(0).values - (b @ dirs).sort(0).values).abs().mean().item()


def parse():
    p = argparse.ArgumentParser("wgan-gp")
    p.add_argument("--gen-iters", type=int, default=240)
    p.add_argument("--n-critic", type=int, default=5)
    p.add_argument("--lambda-gp", type=float, default=10.0)
    p.add_argument("--lr", type=float, default=4e-4)
    p.add_argument("--bs", type=int, default=64)
    return p.parse_args()


def main(opt):
    torch.manual_seed(42)
    G, C = Generator(), Critic()
    opt_G = torch.optim.Adam(G.parameters(), opt.lr, betas=(0.0, 0.9))
    opt_C = torch.optim.Adam(C.parameters(), opt.lr, betas=(0.0, 0.9))
    rows = []
    for it in range(1, opt.gen_iters + 1):
        for _ in range(opt.n_critic):
            real = two_moons(opt.bs)
            with torch.no_grad():
                fake = G(torch.randn(opt.bs, G.z_dim))
            gp, slope = gradient_penalty(C, real, fake)
            wdist = C(real).mean() - C(fake).mean()
            c_cost = -wdist + opt.lambda_gp * gp
            opt_C.zero_grad()
            c_cost.backward()
            opt_C.step()
        g_cost = -C(G(torch.randn(opt.bs, G.z_dim))).mean()
        opt_G.zero_grad()
        g_cost.backward()
        opt_G.step()
        if it % 20 == 0:
            swd = sliced_distance(G(torch.randn(2000, G.z_dim)), two_moons(2000))
            rows.append((it, c_cost.item(), g_cost.item(), wdist.item(), gp.item(), slope.item(), swd))
            print("gen_iter {:4d} | critic {:.4g} | gen {:.4g} | W {:.4g} | gp {:.4g} | slope {:.3g} | SWD {:.4f}".format(*rows[-1]))
    with open("metrics.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow("gen_iter critic gen wdist gp slope swd".split())
        w.writerows(rows)


if __name__ == "__main__":
    main(parse())
