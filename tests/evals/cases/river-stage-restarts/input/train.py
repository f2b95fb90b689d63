"""River stage forecast (24 h ahead) from upstream gauges and rain; cosine schedule with warm restarts (SGDR)."""
import json
import math
import time
import torch
import torch.nn as nn

CFG = dict(lr=0.4, min_lr=1e-3, t0=6, t_mult=2, epochs=42, batch=64, momentum=0.9, weight_decay=8e-4, seed=13, val_rows=150)


def basin(n, seed):
    g = torch.Generator().manual_seed(seed)
    rain = torch.rand(n, 8, generator=g).pow(3) * 4
    up = torch.randn(n, 6, generator=g)
    soil = torch.rand(n, 1, generator=g)
    run = (rain @ torch.tensor([.1, .15, .2, .25, .2, .15, .1, .05])[:, None]) * torch.sigmoid(6 * (soil - 0.5))
    y = run + 0.6 * torch.tanh(up[:, :3].sum(1, keepdim=True)) + 0.3 * up[:, 3:4] * soil + 0.15 * torch.randn(n, 1, generator=g)
    return torch.cat([rain, up, soil], 1), y


def stage_lr(epoch_float):
    """SGDR: cycles of length t0, t0*t_mult, ..."""
    t, length = epoch_float, CFG["t0"]
    while t >= length:
        t, length = t - length, length * CFG["t_mult"]
    return CFG["min_lr"] + 0.5 * (CFG["lr"] - CFG["min_lr"]) * (1 + math.cos(math.pi * t / length))


def main():
    torch.manual_seed(CFG["seed"])
    x, y = basin(8000, 1)
    xv, yv = basin(CFG["val_rows"], 2)
    mu, sd = x.mean(0), x.std(0)
    x, xv = (x - mu) / sd, (xv - mu) / sd
    net = nn.Sequential(nn.Linear(15, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.SGD(net.parameters(), lr=CFG["lr"], momentum=CFG["momentum"], weight_decay=CFG["weight_decay"])
    per = math.ceil(len(x) / CFG["batch"])
    best, snapshots = (float("inf"), -1), []
    for epoch in range(CFG["epochs"]):
        tot, t0 = 0.0, time.time()
        for i, b in enumerate(torch.randperm(len(x)).split(CFG["batch"])):
            lr = stage_lr(epoch + i / per)
            for gr in opt.param_groups:
                gr["lr"] = lr
            loss = nn.functional.mse_loss(net(x[b]), y[b])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            tot += loss.item() * len(b) / len(x)
        with torch.no_grad():
            val = nn.functional.mse_loss(net(xv), yv).item()
        if val < best[0]:
            best = (val, epoch)
        if stage_lr(epoch + 1) > lr:
            snapshots.append(epoch)
        print(json.dumps({"epoch": epoch, "lr_end": round(lr, 5), "train": round(tot, 4), "val": round(val, 4), "best": round(best[0], 4), "best_epoch": best[1]}))
    print(json.dumps({"done": True, "cycle_ends": snapshots, "noise_floor": 0.15 ** 2, "target_var": round(yv.var().item(), 3), "best": best}))


if __name__ == "__main__":
    main()
