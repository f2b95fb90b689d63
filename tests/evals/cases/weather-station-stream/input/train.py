import csv
import multiprocessing
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def write_station_csv(path, rows=600):
    g = torch.Generator().manual_seed(0)
    with open(path, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["temp", "humidity", "pressure", "wind", "temp_next"])
        t = 12.0
        for i in range(rows):
            n = torch.randn(5, generator=g).tolist()
            nxt = 0.9 * t + 1.2 + n[0]
            w.writerow([f"{v:.3f}" for v in (t, 60 + 5 * n[1], 1013 + 4 * n[2], abs(3 + n[3]), nxt)])
            t = nxt


class StationDataset(Dataset):
    """Seeks to each row on demand; the yearly files do not fit in memory."""

    def __init__(self, path):
        self.path = path
        self.offsets = []
        self.file = open(path, "r")
        self.header = self.file.readline().strip().split(",")
        while True:
            pos = self.file.tell()
            if not self.file.readline():
                break
            self.offsets.append(pos)

    def __len__(self):
        return len(self.offsets)

    def __getitem__(self, i):
        self.file.seek(self.offsets[i])
        row = [float(v) for v in self.file.readline().split(",")]
        x = torch.tensor(row[:-1])
        return (x - torch.tensor([12.0, 60.0, 1013.0, 3.0])) / torch.tensor([3.0, 5.0, 4.0, 1.0]), torch.tensor(row[-1])


def main():
    workdir = tempfile.mkdtemp(prefix="stations_")
    path = os.path.join(workdir, "station_041.csv")
    write_station_csv(path)
    ds = StationDataset(path)
    print(f"station file: {len(ds)} rows, columns {ds.header}")
    print("first sample:", ds[0])
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)

    sanity = next(iter(DataLoader(ds, batch_size=8)))
    print("sanity batch ok", [tuple(s.shape) for s in sanity])

    loader = DataLoader(ds, batch_size=32, shuffle=True, num_workers=2,
                        multiprocessing_context=multiprocessing.get_context("spawn"))
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.huber_loss(model(x).squeeze(-1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: huber {loss.item():.4f}")


if __name__ == "__main__":
    main()
