import json
import math

import torch
from torch import nn
from torch.nn.functional import softplus

CFG = dict(noise=8, hidden=64, batch=128, steps=1600, lr_g=5e-4, lr_d=1e-3, r1=0.1, avg=0.998, seed=0)


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


centres = torch.stack([torch.tensor([math.cos(a), math.sin(a)]) for a in torch.arange(8) * math.pi / 4]) * 1.5


def draw(n):
    return centres[torch.randint(0, 8, (n,))] + 0.08 * torch.randn(n, 2)


def quality(x):
    d = torch.cdist(x, centres)
    near, which = d.min(1)
    good = near < 0.32
    counts = torch.bincount(which[good], minlength=8)
    return int((counts > 0.02 * len(x)).sum()), good.float().mean().item()


def main(c):
    torch.manual_seed(c["seed"])
    G, D = mlp(c["noise"], c["hidden"], 2), mlp(2, c["hidden"], 1)
    G_avg = mlp(c["noise"], c["hidden"], 2)
    G_avg.load_state_dict(G.state_dict())
    og = torch.optim.Adam(G.parameters(), c["lr_g"], betas=(0.0, 0.99))
    od = torch.optim.Adam(D.parameters(), c["lr_d"], betas=(0.0, 0.99))
    log = open("gan.jsonl", "w")
    for step in range(1, c["steps"] + 1):
        real = draw(c["batch"]).requires_grad_()
        fake = G(torch.randn(c["batch"], c["noise"]))
        score = D(real)
        (gr,) = torch.autograd.grad(score.sum(), real, create_graph=True)
        d_loss = softplus(-score).mean() + softplus(D(fake.detach())).mean() + 0.5 * c["r1"] * gr.square().sum(1).mean()
        od.zero_grad()
        d_loss.backward()
        od.step()
        g_loss = softplus(-D(G(torch.randn(c["batch"], c["noise"])))).mean()
        og.zero_grad()
        g_loss.backward()
        og.step()
        with torch.no_grad():
            for a, b in zip(G_avg.parameters(), G.parameters()):
                a.lerp_(b, 1 - c["avg"])
        if step % 100 == 0:
            with torch.no_grad():
                modes, good = quality(G_avg(torch.randn(2000, c["noise"])))
                raw_modes, raw_good = quality(G(torch.randn(2000, c["noise"])))
            rec = {"step": step, "d_loss": round(d_loss.item(), 4), "g_loss": round(g_loss.item(), 4), "modes": modes, "good": round(good, 3), "raw_modes": raw_modes, "raw_good": round(raw_good, 3)}
            log.write(json.dumps(rec) + "\n")
            print(rec, flush=True)


if __name__ == "__main__":
    main(CFG)
