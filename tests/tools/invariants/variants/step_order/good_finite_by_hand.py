"""Overflows are left out by hand, two optimizers share a scaler, a penalty is divided by the scale."""
import torch
from torch import nn


def finite(net, batches):
    opt = torch.optim.Adam(net.parameters())
    amp = torch.amp.GradScaler("cuda")
    for x in batches:
        with torch.autocast("cuda", dtype=torch.float16):
            cost = net(x).mean()
        opt.zero_grad()
        amp.scale(cost).backward()
        amp.unscale_(opt)
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if torch.isfinite(norm):
            opt.step()
        amp.update()


def two(batches):
    g, d = nn.Linear(4, 4), nn.Linear(4, 1)
    first, second = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    amp = torch.amp.GradScaler("cuda")
    for x in batches:
        with torch.autocast("cuda", dtype=torch.float16):
            cost = d(x).mean() - d(g(x).detach()).mean()
        second.zero_grad()
        amp.scale(cost).backward()
        amp.unscale_(second)
        amp.step(second)
        with torch.autocast("cuda", dtype=torch.float16):
            other = -d(g(x)).mean()
        first.zero_grad()
        first.zero_grad()
        amp.scale(other).backward()
        amp.unscale_(first)
        amp.step(first)
        amp.update()


def penalty(critic, rows):
    opt = torch.optim.Adam(critic.parameters())
    amp = torch.amp.GradScaler("cuda")
    for x in rows:
        x.requires_grad_(True)
        with torch.autocast("cuda"):
            out = critic(x)
        g = torch.autograd.grad(amp.scale(out.sum()), x, create_graph=True)[0] * (1.0 / amp.get_scale())
        cost = ((g.norm(dim=1) - 1) ** 2).mean()
        opt.zero_grad()
        amp.scale(cost).backward()
        amp.step(opt)
        amp.update()
