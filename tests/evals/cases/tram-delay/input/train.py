import logging
import os
import sys

import torch
import torch.nn.functional as F

from model import DelayNet

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname).1s | %(message)s")
CKPT = "tram.ckpt"
WARM = 3  # epochs in which the input statistics are collected


def trips(n, seed):
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 10, generator=g)
    y = torch.sin(z[:, 0] * 2) + z[:, 1] * z[:, 2] + 0.5 * z[:, 3:6].abs().sum(1) + 0.1 * torch.randn(n, generator=g)
    scale = torch.logspace(-2, 3, 10)
    offset = torch.tensor([0.0, 5.0, -3.0, 40.0, 0.5, 900.0, 10.0, -700.0, 3.0, 1e3])
    return z * scale + offset, y


def fit(until):
    torch.manual_seed(0)
    x, y = trips(3000, 1)
    xv, yv = trips(800, 2)
    model = DelayNet()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, 6, 0.6)
    start = 0
    if os.path.exists(CKPT):
        state = torch.load(CKPT)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        sched.load_state_dict(state["sched"])
        torch.set_rng_state(state["rng"])
        start = state["epoch"] + 1
        logging.info("continue from %s at epoch %d", CKPT, start)
    for epoch in range(start, until):
        model.train()
        total = 0.0
        for b in torch.randperm(len(x)).split(60):
            loss = F.mse_loss(model(x[b], warm=epoch < WARM), y[b])
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = F.mse_loss(model(xv), yv).item()
        logging.info("epoch %2d train_mse %.4f val_mse %.4f lr %.5f", epoch, total / 50, val, sched.get_last_lr()[0])
        sched.step()
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(),
                    "rng": torch.get_rng_state(), "epoch": epoch}, CKPT)


if __name__ == "__main__":
    fit(until=12)  # the nightly slot ends here
    fit(until=18)
