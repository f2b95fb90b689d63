import math

import torch


def chirps(n, n_species, seed, kind):
    """24x24 spectrogram patches. 'general': constant tones; 'birds': up/down sweeps of different curvature."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_species, (n,), generator=g)
    t = torch.linspace(0, 1, 24)
    f = torch.arange(24.0)[:, None]
    x = torch.zeros(n, 1, 24, 24)
    for i in range(n):
        c = int(y[i])
        base = 5 + 9 * float(torch.rand((), generator=g))
        if kind == "general":
            track = torch.full((24,), 2.0 + 2.5 * c)
        else:
            swing = (-1) ** c * (1.5 + 2.0 * (c // 2))
            track = base + swing * torch.sin(math.pi * (t - 0.5))
        x[i, 0] = torch.exp(-((f - track) ** 2) / 1.5)
    return x + 0.25 * torch.randn(x.shape, generator=g), y
