import argparse
import json
import os

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--until", type=int, default=None)
parser.add_argument("--ckpt", default="run.pt")


class Ema:
    """exponential moving average of the weights, used for every evaluation"""

    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.state_dict().items():
            self.shadow[k].lerp_(v, 1 - self.decay)

    def evaluate(self, model, fn):
        backup = {k: v.detach().clone() for k, v in model.state_dict().items()}
        model.load_state_dict(self.shadow)
        out = fn(model)
        model.load_state_dict(backup)
        return out


def spectra(n, seed):
    """absorption spectra -> concentration of three compounds"""
    g = torch.Generator().manual_seed(seed)
    grid = torch.linspace(0, 1, 60)
    lines = torch.stack([torch.exp(-((grid - c) / w) ** 2) for c, w in ((0.3, 0.08), (0.42, 0.1), (0.7, 0.05))])
    conc = torch.rand(n, 3, generator=g)
    x = 1 - torch.exp(-2.5 * conc @ lines) + 0.01 * torch.randn(n, 60, generator=g)
    return x, conc


class Job:
    total, per_round, batch = 3000, 250, 64

    def __init__(self, path):
        torch.manual_seed(2)
        self.path = path
        self.data, self.val = spectra(4000, 0), spectra(500, 1)
        self.model = nn.Sequential(nn.Linear(60, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 3))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, self.total)
        self.ema = Ema(self.model, decay=0.995)
        self.step = 0
        if os.path.exists(path):
            self.restore()

    def restore(self):
        blob = torch.load(self.path)
        self.model.load_state_dict(blob["model"])
        self.opt.load_state_dict(blob["opt"])
        self.sched.load_state_dict(blob["sched"])
        self.step = blob["step"]
        torch.set_rng_state(blob["rng"])
        print(json.dumps({"event": "restored", "file": self.path, "step": self.step}))

    def save(self):
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(), "sched": self.sched.state_dict(),
                    "step": self.step, "rng": torch.get_rng_state()}, self.path)

    def val_rmse(self, model):
        with torch.no_grad():
            return (model(self.val[0]) - self.val[1]).pow(2).mean().sqrt().item()

    def run(self, until):
        x, y = self.data
        while self.step < until:
            tot = 0.0
            for _ in range(self.per_round):
                i = torch.randint(len(x), (self.batch,))
                loss = (self.model(x[i]) - y[i]).pow(2).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.sched.step()
                self.ema.update(self.model)
                self.step += 1
                tot += loss.item()
            print(json.dumps({"step": self.step, "train_rmse": round((tot / self.per_round) ** 0.5, 5),
                              "val_rmse": round(self.ema.evaluate(self.model, self.val_rmse), 5),
                              "lr": float(f"{self.sched.get_last_lr()[0]:.3g}")}))
            self.save()


if __name__ == "__main__":
    args = parser.parse_args()
    if args.until is None:                      # local dry run of two slurm allocations
        Job(args.ckpt).run(1750)
        Job(args.ckpt).run(Job.total)
    else:
        Job(args.ckpt).run(args.until)
