import torch

STAGES = ("W", "N1", "N2", "N3", "REM")
FREQ = (11.0, 7.0, 5.0, 2.0, 8.5)


def night(t, gen):
    stage, out = 0, []
    for _ in range(t):
        if torch.rand(1, generator=gen).item() < 0.25:
            stage = int(torch.multinomial(torch.tensor([0.1, 0.1, 0.45, 0.2, 0.15]), 1, generator=gen))
        out.append(stage)
    y = torch.tensor(out)
    grid = torch.linspace(0, 1, 64)
    f = torch.tensor(FREQ)[y].unsqueeze(1)
    phase = 6.28 * torch.rand(t, 1, generator=gen)
    a = torch.sin(6.28 * f * grid + phase)
    b = torch.sin(6.28 * 0.5 * f * grid + phase)
    x = torch.stack([a, b], 1)
    return x + 0.7 * torch.randn(x.shape, generator=gen), y


def nights(n, t=24, seed=0):
    gen = torch.Generator().manual_seed(seed)
    pairs = [night(t, gen) for _ in range(n)]
    return torch.stack([p[0] for p in pairs]), torch.stack([p[1] for p in pairs])
