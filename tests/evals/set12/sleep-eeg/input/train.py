"""Sleep stage classifier on EEG epochs stored in HDF5."""
import argparse
import time

import h5py
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

STAGES = ["wake", "n1", "n2", "n3", "rem"]


class EegEpochs(Dataset):
    def __init__(self, path, rows):
        self.path, self.rows = path, rows
        self.file = None

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        if self.file is None:
            self.file = h5py.File(self.path, "r", rdcc_nbytes=1 << 20)
        r = self.rows[i]
        x = self.file["eeg"][r].astype(np.float32) * 0.1
        return torch.from_numpy(x), int(self.file["stage"][r])


class StageNet(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(channels, 24, 7, stride=2), nn.ReLU(), nn.Conv1d(24, 32, 5, stride=2), nn.ReLU())
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        h = self.net(x)
        return self.fc(torch.cat([h.mean(-1), h.amax(-1)], -1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--file", default="night_07.h5")
    p.add_argument("--steps", type=int, default=32)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--report", type=int, default=8)
    args = p.parse_args()
    torch.manual_seed(0)
    with h5py.File(args.file) as f:
        n, channels, length = f["eeg"].shape
    loader = DataLoader(EegEpochs(args.file, np.arange(n)), batch_size=args.batch, shuffle=True)
    model = StageNet(channels, len(STAGES))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    print(f"{args.file}: {n} epochs of {channels} x {length}, {len(loader)} batches per pass", flush=True)

    step, losses = 0, []
    t_data = t_step = 0.0
    mark = time.perf_counter()
    while step < args.steps:
        for x, y in loader:
            t_data += time.perf_counter() - mark
            begin = time.perf_counter()
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
            t_step += time.perf_counter() - begin
            step += 1
            if step % args.report == 0:
                share = 100 * t_data / (t_data + t_step)
                rate = args.report * args.batch / (t_data + t_step)
                print(f"step {step:3d}  loss {np.mean(losses):.4f}  {rate:7.1f} epochs/s  waiting for data {share:.0f}%", flush=True)
                losses, t_data, t_step = [], 0.0, 0.0
            mark = time.perf_counter()
            if step == args.steps:
                break


if __name__ == "__main__":
    main()
