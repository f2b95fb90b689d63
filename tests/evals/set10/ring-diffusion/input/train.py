import json
import math
import time

import torch
import yaml

from diffusion import Denoiser, GaussianDiffusion


def rings(n):
    """two rings, the inner one off centre, scaled to unit variance"""
    which = torch.rand(n) < 0.35
    ang = 2 * math.pi * torch.rand(n)
    radius = torch.where(which, 0.45, 2.0) + 0.06 * torch.randn(n)
    pts = torch.stack([radius * ang.cos(), radius * ang.sin()], -1)
    pts[which] += torch.tensor([0.9, 0.3])
    mean, std = pts.mean(0), pts.std()
    return (pts - mean) / std


def energy_distance(a, b):
    ab = torch.cdist(a, b).mean()
    aa = torch.cdist(a, a).sum() / (len(a) * (len(a) - 1))
    bb = torch.cdist(b, b).sum() / (len(b) * (len(b) - 1))
    return (2 * ab - aa - bb).item()


def nearest(a, b):
    return torch.cdist(a, b).min(1).values.mean().item()


def main():
    with open("config.yaml") as f:
        cfg = yaml.safe_load(f)
    print("config:", json.dumps(cfg))
    run = cfg["run"]
    torch.manual_seed(run["seed"])
    data = rings(cfg["data"]["n_points"])
    train, held = data[:-1500], data[-1500:]
    other = train[:1500]
    print(f"reference: energy {energy_distance(other, held):.4f}  nearest {nearest(held, train):.4f}")

    process = GaussianDiffusion(cfg["diffusion"])
    n_samples = cfg["sampling"].pop("n_samples")
    sampler = GaussianDiffusion({**cfg["diffusion"], **cfg["sampling"]})
    net = Denoiser(**cfg["net"])
    ema = Denoiser(**cfg["net"])
    ema.load_state_dict(net.state_dict())
    opt = torch.optim.Adam(net.parameters(), lr=run["lr"])
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, run["steps"], eta_min=1e-4)

    running, t0 = 0.0, time.time()
    for step in range(1, run["steps"] + 1):
        batch = train[torch.randint(0, len(train), (run["batch_size"],))]
        loss = process.loss(net, batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        with torch.no_grad():
            for p, q in zip(ema.parameters(), net.parameters()):
                p.lerp_(q, 0.005)
        running += loss.item()
        if step % run["report_every"] == 0:
            s = sampler.sample(ema, n_samples)
            print(f"step {step:5d}  loss {running / run['report_every']:.4f}  "
                  f"energy {energy_distance(s, held):.4f}  nearest {nearest(s, train):.4f}  "
                  f"sample std {s.std():.3f}  {time.time() - t0:.1f}s")
            running = 0.0


if __name__ == "__main__":
    main()
