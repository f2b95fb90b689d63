import torch
from torch.utils.data import Dataset


def prototypes(classes=5, length=80, seed=6):
    """smooth random strokes, one per gesture (two channels)"""
    g = torch.Generator().manual_seed(seed)
    coef = torch.randn(classes, 2, 5, generator=g)
    t = torch.linspace(0, 1, length)
    basis = torch.stack([torch.sin(torch.pi * (k + 1) * t) for k in range(5)])
    return coef @ basis


def recordings(n, seed, classes=5, length=80):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    x = prototypes(classes, length)[y]
    shift = torch.randint(-30, 31, (n,), generator=g)
    angle = (torch.rand(n, generator=g) - 0.5) * 3.0
    gain = 0.5 + torch.rand(n, generator=g)
    out = []
    for xi, s, a, k in zip(x, shift.tolist(), angle, gain):
        rot = torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])])
        out.append(k * rot @ torch.roll(xi, s, dims=1))
    return torch.stack(out) + 0.3 * torch.randn(n, 2, length, generator=g), y


class RandomGesture:
    """random roll, rotation, gain and jitter"""

    def __call__(self, x):
        s = int(torch.randint(-30, 31, (1,)))
        a = (torch.rand(()) - 0.5) * 3.0
        rot = torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])])
        return (0.7 + 0.6 * torch.rand(())) * (rot @ torch.roll(x, s, dims=1)) + 0.2 * torch.randn_like(x)


class GestureSet(Dataset):
    def __init__(self, x, y, transform=None):
        self.samples = [(transform(xi) if transform else xi, int(yi)) for xi, yi in zip(x, y)]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]
