"""Event detection on seismic traces; loader workers are started with 'spawn' (the reader library is not fork safe)."""
import argparse
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def bandpass(low, high):
    """Returns a filter function for one trace."""
    def apply(trace):
        spec = torch.fft.rfft(trace)
        f = torch.linspace(0, 0.5, len(spec))
        return torch.fft.irfft(spec * ((f > low) & (f < high)), n=len(trace))
    return apply


class Traces(Dataset):
    def __init__(self, n, length=64, transform=None, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.event = torch.randint(0, 2, (n,), generator=g)
        t = torch.arange(length)
        onset = torch.randint(8, 40, (n, 1), generator=g)
        wave = torch.sin(0.9 * (t - onset)) * torch.exp(-(t - onset).clamp(min=0) / 10) * (t >= onset)
        self.x = torch.randn(n, length, generator=g) + 2 * self.event[:, None] * wave
        self.transform = transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        return (self.transform(x) if self.transform else x), self.event[i].float()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--epochs", type=int, default=2)
    args = p.parse_args()
    torch.manual_seed(0)
    data = Traces(600, transform=bandpass(0.05, 0.3))
    loader = DataLoader(data, batch_size=30, shuffle=True, num_workers=args.workers,
                        multiprocessing_context="spawn" if args.workers else None, persistent_workers=args.workers > 0)
    net = nn.Sequential(nn.Unflatten(1, (1, 64)), nn.Conv1d(1, 16, 9), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(16, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    print(f"{len(loader)} batches, workers={args.workers}")
    for epoch in range(args.epochs):
        for k, (x, y) in enumerate(loader):
            loss = nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if k % 5 == 0:
                print(f"ep{epoch} b{k:02d} bce={loss.item():.3f}")
    print("finished")


if __name__ == "__main__":
    main()
