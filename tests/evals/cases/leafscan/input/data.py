import torch
from torch.utils.data import DataLoader, TensorDataset

SPECIES = ["healthy", "rust", "mildew", "blight", "mosaic"]


def leaf_patches(n, seed):
    """Reflectance patches in raw sensor units (roughly 90..160), one texture per class."""
    g = torch.Generator().manual_seed(seed)
    tex = torch.randn(len(SPECIES), 3, 4, 4, generator=torch.Generator().manual_seed(99))
    tex = torch.nn.functional.interpolate(tex, size=16, mode="nearest")
    y = torch.randint(0, len(SPECIES), (n,), generator=g)
    x = 118.0 + 14.0 * tex[y] + 22.0 * torch.randn(n, 3, 16, 16, generator=g)
    return TensorDataset(x, y)


def loaders(batch):
    tr = DataLoader(leaf_patches(1280, 1), batch_size=batch, shuffle=True, drop_last=True)
    va = DataLoader(leaf_patches(320, 2), batch_size=160)
    return tr, va
