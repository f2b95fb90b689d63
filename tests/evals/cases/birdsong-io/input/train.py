"""Bird call classifier; spectrograms are computed on the fly in the dataset."""
import json
import math
import time
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Calls(Dataset):
    def __init__(self, n=400, species=5, rate=800):
        g = torch.Generator().manual_seed(0)
        self.y = torch.randint(0, species, (n,), generator=g)
        t = torch.arange(rate) / rate
        f0 = 40 + 35 * self.y[:, None] + 5 * torch.rand(n, 1, generator=g)
        self.wave = torch.sin(2 * math.pi * f0 * t) + 0.8 * torch.randn(n, rate, generator=g)

    def spectrogram(self, w, win=100, hop=50, bins=24):
        frames = []
        for start in range(0, len(w) - win, hop):
            piece = w[start:start + win]
            row = []
            for k in range(1, bins + 1):
                a = 2 * math.pi * 0.5 * k / bins * torch.arange(win)
                row.append(((piece * a.cos()).sum() ** 2 + (piece * a.sin()).sum() ** 2).log1p())
            frames.append(torch.stack(row))
        return torch.stack(frames)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.spectrogram(self.wave[i]), self.y[i]


def main(steps=24):
    torch.manual_seed(0)
    loader = DataLoader(Calls(), batch_size=8, shuffle=True)
    net = nn.Sequential(nn.Flatten(), nn.Linear(14 * 24, 64), nn.ReLU(), nn.Linear(64, 5))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    spent = {"fetch": 0.0, "fwd": 0.0, "bwd": 0.0, "opt": 0.0}
    it = iter(loader)
    began = time.perf_counter()
    for s in range(1, steps + 1):
        t = time.perf_counter()
        x, y = next(it)
        t, spent["fetch"] = time.perf_counter(), spent["fetch"] + time.perf_counter() - t
        loss = nn.functional.cross_entropy(net(x), y)
        t, spent["fwd"] = time.perf_counter(), spent["fwd"] + time.perf_counter() - t
        opt.zero_grad()
        loss.backward()
        t, spent["bwd"] = time.perf_counter(), spent["bwd"] + time.perf_counter() - t
        opt.step()
        spent["opt"] += time.perf_counter() - t
        if s % 4 == 0:
            ms = {f"ms_{k}": round(1000 * v / s, 1) for k, v in spent.items()}
            print(json.dumps({"step": s, "loss": round(loss.item(), 4), **ms,
                              "samples_per_s": round(8 * s / (time.perf_counter() - began), 1)}), flush=True)


if __name__ == "__main__":
    main()
