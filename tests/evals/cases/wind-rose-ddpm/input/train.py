"""Diffusion model of hourly wind vectors (u, v) at a ridge station, used to draw synthetic wind years."""
import argparse
import logging
import math
import torch
import torch.nn as nn
from schedule import Schedule
from sampler import ddim

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
log = logging.getLogger("wind")


def wind_data(n, g):
    """Two prevailing directions plus a calm core, standardised."""
    which = torch.rand(n, generator=g)
    ang = torch.where(which < 0.55, torch.full((n,), 0.6), torch.full((n,), 3.9)) + 0.22 * torch.randn(n, generator=g)
    speed = torch.where(which < 0.55, torch.full((n,), 9.0), torch.full((n,), 6.0)) + 1.1 * torch.randn(n, generator=g)
    calm = which > 0.9
    speed = torch.where(calm, 1.0 * torch.rand(n, generator=g), speed)
    x = torch.stack([speed * ang.cos(), speed * ang.sin()], 1)
    return (x - x.mean(0)) / x.std(0)


class EpsNet(nn.Module):
    def __init__(self, dim=2, width=128, emb=32):
        super().__init__()
        self.freq = nn.Buffer(torch.exp(torch.linspace(0, math.log(1e-4), emb // 2)), persistent=False)
        self.net = nn.Sequential(nn.Linear(dim + emb, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, width), nn.SiLU(), nn.Linear(width, dim))

    def forward(self, x, t):
        a = t[:, None].float() * self.freq
        return self.net(torch.cat([x, a.sin(), a.cos()], 1))


def sliced_w1(a, b, k=64):
    g = torch.Generator().manual_seed(1)
    d = torch.randn(a.shape[1], k, generator=g)
    d = d / d.norm(dim=0)
    return ((a @ d).sort(0).values - (b @ d).sort(0).values).abs().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--T", type=int, default=400)
    ap.add_argument("--sample-steps", type=int, default=40)
    ap.add_argument("--epochs", type=int, default=30)
    ap.add_argument("--beta-start", type=float, default=1e-4)
    ap.add_argument("--beta-end", type=float, default=0.03)
    args = ap.parse_args()
    log.info("args %s", vars(args))

    torch.manual_seed(4)
    g = torch.Generator().manual_seed(4)
    data, held = wind_data(12000, g), wind_data(3000, g)
    sched = Schedule(args.T, args.beta_start, args.beta_end)
    log.info("terminal abar %.2e, two data halves differ by W1=%.3f", sched.abar[-1], sliced_w1(data[:3000], held))
    model = EpsNet()
    ema = EpsNet()
    ema.load_state_dict(model.state_dict())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, args.epochs + 1):
        tot, nb = 0.0, 0
        for idx in torch.randperm(len(data)).split(256):
            x0 = data[idx]
            t = torch.randint(0, args.T, (len(idx),))
            eps = torch.randn_like(x0)
            loss = (model(sched.q_sample(x0, t, eps), t) - eps).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                for p, q in zip(ema.parameters(), model.parameters()):
                    p.lerp_(q, 0.01)
            tot, nb = tot + loss.item(), nb + 1
        if epoch % 5 == 0 or epoch == 1:
            s = ddim(ema, 3000, 2, args.T, args.sample_steps, args.beta_start, args.beta_end, torch.Generator().manual_seed(9))
            log.info("epoch %2d eps-mse %.4f | samples mean (%+.2f, %+.2f) std (%.2f, %.2f) W1-to-heldout %.3f",
                     epoch, tot / nb, *s.mean(0).tolist(), *s.std(0).tolist(), sliced_w1(s, held))


if __name__ == "__main__":
    main()
