import numpy as np
import torch
from torch import nn

from schedule import cyclic

BASE_LR, STEPS, BATCH = 0.02, 2100, 64


def features(raw):
    hour, temp, hum, occ = raw.T[:4]
    day = 2 * np.pi * (hour % 24) / 24
    x = np.stack([temp, hum, occ, np.sin(day), np.cos(day)], 1)
    return x


def main():
    torch.manual_seed(30)
    raw = np.loadtxt("meter/plant2.csv", delimiter=",", skiprows=1)
    x, y = features(raw), raw[:, 4]
    pick = np.random.default_rng(0).permutation(len(x))
    fit, test = pick[:3200], pick[3200:]
    mx, sx, my, sy = x[fit].mean(0), x[fit].std(0), y[fit].mean(), y[fit].std()
    x, y = torch.tensor((x - mx) / sx, dtype=torch.float32), torch.tensor((y - my) / sy, dtype=torch.float32)
    net = nn.Sequential(nn.Linear(5, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
    opt = torch.optim.AdamW(net.parameters(), lr=BASE_LR)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, cyclic)
    recent = []
    for step in range(STEPS):
        rows = torch.from_numpy(np.random.default_rng(step).choice(fit, BATCH))
        loss = nn.functional.mse_loss(net(x[rows]).squeeze(1), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        lr = opt.param_groups[0]["lr"]
        sched.step()
        recent.append(loss.item())
        if step % 25 == 0 or step == STEPS - 1:
            with torch.no_grad():
                mae = (net(x[test]).squeeze(1) - y[test]).abs().mean().item() * sy
            print(f"step={step} lr={lr:.6f} loss={np.mean(recent[-25:]):.5f} test_mae_kw={mae:.3f}", flush=True)


if __name__ == "__main__":
    main()
