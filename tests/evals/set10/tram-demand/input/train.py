"""Tram riders per hour with a stateful LSTM.

The timetable changes at irregular times.  A notice with the new service level
is only in the feed in the hour of the change, so the net has to remember it for
days: the series is cut into parallel streams, read in order, and the state is
carried from window to window (detached, truncated back-propagation).
"""
from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.nn as nn


@dataclass
class Settings:
    streams: int = 16
    window: int = 24
    hidden: int = 32
    epochs: int = 50
    lr: float = 5e-3
    clip: float = 1.0
    smooth_weight: float = 0.0   # jerkiness penalty, switched off since the March review
    val_hours: int = 1440
    seed: int = 33


class Demand(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.lstm = nn.LSTM(n_in, hidden, batch_first=True)
        self.out = nn.Sequential(nn.Linear(hidden + n_in, 32), nn.ReLU(), nn.Linear(32, 1))
        with torch.no_grad():
            self.lstm.bias_ih_l0[hidden:2 * hidden].fill_(2.0)   # remember by default

    def forward(self, x, state=None):
        h, state = self.lstm(x, state)
        return self.out(torch.cat([h, x], -1)).squeeze(-1), state


def features(z):
    hour = z["hour"]
    a = 2 * np.pi * (hour % 24) / 24
    weekend = ((hour // 24) % 7 >= 5).astype(np.float32)
    cols = [np.sin(a), np.cos(a), np.sin(2 * a), np.cos(2 * a), np.sin(3 * a), np.cos(3 * a), weekend, z["notice"], z["level"]]
    return torch.tensor(np.stack(cols, -1), dtype=torch.float32)


def to_streams(t, n):
    length = len(t) // n
    return t[:n * length].reshape(n, length, *t.shape[1:])


def detach(state):
    return tuple(s.detach() for s in state)


@torch.no_grad()
def evaluate(model, x, y, warm):
    """one pass over the warm-up and validation hours; the error counts validation only"""
    model.eval()
    pred, _ = model(x.unsqueeze(0))
    model.train()
    return (pred[0, warm:] - y[warm:]).abs().mean().item()


def main():
    cfg = Settings()
    print("settings", asdict(cfg))
    torch.manual_seed(cfg.seed)
    z = np.load("demand.npz")
    x = features(z)
    cut = len(x) - cfg.val_hours
    riders = torch.tensor(z["riders"])
    mean, std = riders[:cut].mean(), riders[:cut].std()
    y = (riders - mean) / std
    xs, ys = to_streams(x[:cut], cfg.streams), to_streams(y[:cut], cfg.streams)
    warm = 720
    xv, yv = x[cut - warm:], y[cut - warm:]
    week_ago = (y[cut:] - y[cut - 168:-168]).abs().mean().item()
    print(f"{cfg.streams} streams of {xs.shape[1]} h, windows of {cfg.window} h, "
          f"same-hour-last-week MAE {week_ago * std:.0f} riders")

    model = Demand(x.shape[1], cfg.hidden)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg.epochs, eta_min=1e-4)
    for epoch in range(1, cfg.epochs + 1):
        state, fit_sum, smooth_sum, k = None, 0.0, 0.0, 0
        for start in range(0, xs.shape[1] - cfg.window + 1, cfg.window):
            xb, yb = xs[:, start:start + cfg.window], ys[:, start:start + cfg.window]
            if state is not None:
                state = detach(state)
            pred, state = model(xb, state)
            fit = nn.functional.smooth_l1_loss(pred, yb)
            smooth = (pred[:, 2:] - 2 * pred[:, 1:-1] + pred[:, :-2]).pow(2).mean()
            loss = fit + cfg.smooth_weight * smooth
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
            opt.step()
            fit_sum += fit.item()
            smooth_sum += smooth.item()
            k += 1
        sched.step()
        if epoch % 5 == 0:
            mae = evaluate(model, xv, yv, warm) * std
            print(f"epoch {epoch:2d}  fit {fit_sum / k:.4f}  smooth {smooth_sum / k:.4f}  val MAE {mae:.0f} riders")


if __name__ == "__main__":
    main()
