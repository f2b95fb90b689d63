import torch
import torch.nn as nn


class BeatClassifier(nn.Module):
    def __init__(self, beats=8, width=24):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(1, width, 7, stride=2, padding=3), nn.ReLU())
        self.body = nn.Sequential(
            nn.Conv1d(width, 2 * width, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv1d(2 * width, 2 * width, 5, stride=2, padding=2), nn.ReLU(),
        )
        self.cls = nn.Linear(2 * width * 12, beats)

    def forward(self, x):
        return self.cls(self.body(self.stem(x)).flatten(1))


def beats(n, seed, kinds=8, length=96):
    """Noisy beats: each kind is a fixed mixture of three bumps."""
    ref = torch.Generator().manual_seed(314)
    t = torch.linspace(0, 1, length)
    centre = torch.rand(kinds, 3, 1, generator=ref)
    height = torch.randn(kinds, 3, 1, generator=ref)
    shape = (height * torch.exp(-((t - centre) / 0.05) ** 2)).sum(1)
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, kinds, (n,), generator=g)
    x = shape[y] * (0.7 + 0.6 * torch.rand(n, 1, generator=g)) + 0.45 * torch.randn(n, length, generator=g)
    return x.unsqueeze(1), y
