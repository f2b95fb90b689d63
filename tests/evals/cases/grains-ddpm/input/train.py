import copy
import json

import torch
import yaml

from diffusion import Average, Denoiser, Process


GRAINS = torch.tensor([[-1.2, -0.7], [1.2, -0.7], [0.0, 1.4]])


def grains(n, g):
    return GRAINS[torch.randint(0, 3, (n,), generator=g)] + 0.1 * torch.randn(n, 2, generator=g)


def off_grain(x):
    """mean distance of the samples to the nearest grain (real data: 0.125)"""
    return torch.cdist(x, GRAINS).min(1).values.mean().item()


def main():
    c = yaml.safe_load(open("settings.yaml"))
    torch.manual_seed(c["seed"])
    g = torch.Generator().manual_seed(c["seed"])
    proc, net = Process(c["timesteps"]), Denoiser(c["hidden"], c["timesteps"])
    avg = Average(net, c["ema_decay"])
    opt = torch.optim.Adam(net.parameters(), lr=c["lr"])
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, c["steps"])
    out = open("train_log.jsonl", "w")
    smooth = None
    for step in range(1, c["steps"] + 1):
        x0 = grains(c["batch"], g)
        t = torch.randint(0, proc.T, (len(x0),), generator=g)
        eps = torch.randn(x0.shape, generator=g)
        loss = (net(proc.noisy(x0, t, eps), t) - eps).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        avg.update(net)
        smooth = loss.item() if smooth is None else 0.98 * smooth + 0.02 * loss.item()
        if step % 150 == 0:
            sampler = copy.deepcopy(net)
            sampler.load_state_dict(avg.shadow)
            x = proc.sample(sampler.eval(), 1000, g)
            rec = dict(step=step, loss=round(smooth, 4), lr=round(sched.get_last_lr()[0], 6), sample_std=round(x.std().item(), 3), off_grain=round(off_grain(x), 4))
            out.write(json.dumps(rec) + "\n")
            print(" ".join(f"{k}={v}" for k, v in rec.items()), flush=True)


if __name__ == "__main__":
    main()
