"""Surge residual forecast for coastal tide gauges, trained season by season.

Input: 48 h of water level at a gauge, with a validity mask (gauges drop out).
Output: level 6 h ahead.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
N_GAUGES, HOURS, WIN, LEAD = 9, 24 * 120, 48, 6
SEASONS = 8


def simulate():
    t = torch.arange(HOURS, dtype=torch.float32)
    levels, valid = [], []
    for g in range(N_GAUGES):
        ph = torch.rand(3) * 2 * math.pi
        tide = 1.1 * torch.sin(2 * math.pi * t / 12.42 + ph[0]) + 0.4 * torch.sin(2 * math.pi * t / 24.0 + ph[1])
        surge = torch.randn(HOURS).cumsum(0) * 0.03
        surge = surge - F.avg_pool1d(surge[None, None], 241, 1, 120, count_include_pad=False)[0, 0]
        levels.append(tide + surge + 2.0 * torch.randn(1) + 0.02 * torch.randn(HOURS))
        m = (torch.rand(HOURS) > 0.04).float()
        for _ in range(4):  # short telemetry gaps
            s = int(torch.randint(0, HOURS - 20, (1,)))
            m[s:s + 12] = 0
        valid.append(m)
    level, mask = torch.stack(levels), torch.stack(valid)
    mask[5, 1810:1905] = 0  # gauge 5 was on the bench for recalibration
    return level, mask


class WindowNorm(nn.Module):
    """Masked standardisation of one window, keeps (mu, sd) to undo it."""

    def forward(self, x, mask):
        n = mask.sum(1, keepdim=True).clamp(min=1.0)
        mu = (x * mask).sum(1, keepdim=True) / n
        var = (((x - mu) ** 2) * mask).sum(1, keepdim=True) / n
        sd = var.sqrt()
        z = torch.where(sd > 1e-4, (x - mu) / sd.clamp(min=1e-4), torch.zeros_like(x))
        return z * mask, mu, sd


class SurgeNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.datum = nn.Embedding(N_GAUGES, 1)
        self.gain = nn.Embedding(N_GAUGES, 1)
        nn.init.zeros_(self.datum.weight)
        nn.init.ones_(self.gain.weight)
        self.norm = WindowNorm()
        self.net = nn.Sequential(nn.Linear(2 * WIN, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, x, mask, gauge):
        x = x * self.gain(gauge) + self.datum(gauge)
        z, mu, sd = self.norm(x, mask)
        y = self.net(torch.cat([z, mask], 1))
        return (y * sd + mu - self.datum(gauge)) / self.gain(gauge)


def windows(level, mask, lo, hi):
    xs, ms, gs, ys = [], [], [], []
    for g in range(N_GAUGES):
        for s in range(lo, hi - WIN - LEAD, 3):
            e = s + WIN
            if mask[g, e + LEAD - 1] == 0:
                continue
            xs.append(level[g, s:e] * mask[g, s:e]); ms.append(mask[g, s:e]); gs.append(g); ys.append(level[g, e + LEAD - 1])
    return torch.stack(xs), torch.stack(ms), torch.tensor(gs), torch.stack(ys)[:, None]


def main():
    level, mask = simulate()
    model = SurgeNet()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    step = 0
    per = HOURS // SEASONS
    for season in range(SEASONS):
        x, m, g, y = windows(level, mask, season * per, (season + 1) * per)
        print(f"season {season}: {len(x)} windows, valid {m.mean():.3f}, |x|max {x.abs().max():.2f}")
        for epoch in range(3):
            order = torch.randperm(len(x))
            for i in range(0, len(x), 64):
                b = order[i:i + 64]
                pred = model(x[b], m[b], g[b])
                loss = F.smooth_l1_loss(pred, y[b], beta=0.2)
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                if step % 20 == 0:
                    print(f"  step {step:4d} epoch {epoch} loss {loss.item():.4f} pred [{pred.min().item():.2f}, {pred.max().item():.2f}]")
                step += 1
    print("done, final loss", loss.item())


if __name__ == "__main__":
    main()
