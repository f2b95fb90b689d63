"""Water level at the harbour gauge from tidal phases, pressure and wind.

Runs with bfloat16 autocast (on CPU here, on the GPU box in production).
"""
import math
import os
import random

import numpy as np
import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", 17))
AMP_DTYPE = torch.bfloat16
DEVICE = torch.device("cpu")
TIDAL_PERIODS_H = (12.4206, 12.0, 12.6583, 25.8193, 23.9345, 6.2103)   # M2 S2 N2 O1 K1 M4

random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


class TidalPhases(nn.Module):
    """hour since the start of the record -> sin/cos for each constituent"""

    def __init__(self, periods):
        super().__init__()
        omega = [2 * math.pi / p for p in periods]
        self.register_buffer("omega", torch.tensor(omega))

    def forward(self, hour):
        phase = hour.unsqueeze(-1) * self.omega
        return torch.cat([torch.sin(phase), torch.cos(phase)], dim=-1)


class LevelNet(nn.Module):
    def __init__(self, periods, n_weather=2, width=64):
        super().__init__()
        self.tide = TidalPhases(periods)
        self.weather = nn.Sequential(nn.Linear(n_weather, width), nn.GELU())
        self.mix = nn.Sequential(
            nn.Linear(width + 2 * len(periods), width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, 1),
        )

    def forward(self, batch):
        feats = torch.cat([self.tide(batch["hour"]), self.weather(batch["weather"])], dim=-1)
        return self.mix(feats).squeeze(-1)


def to_device(batch):
    return {k: v.to(DEVICE, AMP_DTYPE, non_blocking=True) for k, v in batch.items()}


def load(path="gauge.csv"):
    raw = np.genfromtxt(path, delimiter=",", names=True)
    hour = torch.tensor(raw["hour"], dtype=torch.float32)
    weather = torch.tensor(np.stack([(raw["pressure_hpa"] - 1013) / 6, raw["wind_ms"] / 4], -1), dtype=torch.float32)
    level = torch.tensor(raw["level_m"], dtype=torch.float32)
    level = (level - level.mean()) / level.std()
    return {"hour": hour, "weather": weather, "level": level}


def take(data, idx):
    return {k: v[idx] for k, v in data.items()}


@torch.no_grad()
def rmse(model, data, idx):
    model.eval()
    with torch.autocast(DEVICE.type, dtype=AMP_DTYPE):
        batch = to_device(take(data, idx))
        pred = model(batch)
    model.train()
    return (pred.float() - batch["level"].float()).pow(2).mean().sqrt().item()


def main(epochs=36, batch_size=128):
    data = load()
    n = len(data["hour"])
    # every tenth day is held out
    day = (data["hour"] / 24).long()
    is_val = day % 10 == 9
    train_idx, val_idx = torch.where(~is_val)[0], torch.where(is_val)[0]
    print(f"{n} hours, train {len(train_idx)}, val {len(val_idx)}, level std 1 (normalised)")

    model = LevelNet(TIDAL_PERIODS_H).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=3e-3, epochs=epochs, steps_per_epoch=math.ceil(len(train_idx) / batch_size))
    criterion = nn.MSELoss()

    for epoch in range(epochs):
        order = train_idx[torch.randperm(len(train_idx))]
        seen, total = 0, 0.0
        for idx in order.split(batch_size):
            batch = to_device(take(data, idx))
            with torch.autocast(DEVICE.type, dtype=AMP_DTYPE):
                pred = model(batch)
            loss = criterion(pred.float(), batch["level"].float())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            total += loss.item() * len(idx)
            seen += len(idx)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1:3d} mse {total / seen:.4f} rmse train {rmse(model, data, train_idx):.3f} "
                  f"val {rmse(model, data, val_idx):.3f} lr {scheduler.get_last_lr()[0]:.2e}")


if __name__ == "__main__":
    main()
