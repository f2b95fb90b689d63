import argparse
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data import default_collate


class Scans(Dataset):
    """Range scans with an intensity channel; the sensor offset is removed per scan."""

    def __init__(self, n=800, beams=36, seed=1):
        rng = np.random.default_rng(seed)
        self.kind = rng.integers(0, 4, n)
        ang = np.linspace(0, 2 * np.pi, beams, endpoint=False)
        r = 5 + 1.5 * np.cos((self.kind[:, None] + 1) * ang[None] + rng.uniform(0, 6.28, (n, 1)))
        self.scan = (r + 0.2 * rng.normal(size=r.shape)).astype(np.float32)
        self.offset = rng.normal(size=n) * 0.1

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        scan = self.scan[i] + self.offset[i : i + 1]
        return scan - scan.mean(), self.kind[i]


class BeamNet(nn.Module):
    def __init__(self, beams=36):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 16, 5, padding=2, padding_mode="circular"), nn.ReLU(),
                                  nn.Conv1d(16, 16, 5, padding=2, padding_mode="circular"), nn.ReLU())
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(16 * beams, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, scan):
        return self.fc(self.conv(scan[:, None]))


class Trainer:
    def __init__(self, args):
        self.args = args
        self.net = BeamNet()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=args.lr)
        self.data = DataLoader(Scans(), args.batch, shuffle=True, collate_fn=default_collate)

    def fit(self):
        print(f"[lidar] {sum(p.numel() for p in self.net.parameters())} weights, {len(self.data)} batches per epoch")
        for epoch in range(self.args.epochs):
            losses = []
            for scan, kind in self.data:
                logits = self.net(scan)
                loss = nn.functional.cross_entropy(logits, kind)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                losses.append(loss.item())
            print(f"[lidar] epoch {epoch} mean xent {np.mean(losses):.4f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--lr", type=float, default=3e-3)
    a = ap.parse_args()
    torch.manual_seed(3)
    Trainer(a).fit()
