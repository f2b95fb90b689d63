import torch


def frame_features(n, length=12, dim=32, n_classes=6, seed=0):
    """Two marker frames per clip; the class is given by their distance in time."""
    g = torch.Generator().manual_seed(seed)
    marker = torch.randn(2, dim, generator=torch.Generator().manual_seed(99)) * 2
    x = 0.5 * torch.randn(n, length, dim, generator=g)
    gap = torch.randint(0, n_classes, (n,), generator=g)
    start = torch.randint(0, length - n_classes, (n,), generator=g)
    rows = torch.arange(n)
    x[rows, start] += marker[0]
    x[rows, start + gap] += marker[1]
    return x, gap
