"""Rendered stand-in for the greenhouse photos: a leaf outline, with a lesion pattern that depends on the class."""
import math
import random

import torch
from torch.utils.data import DataLoader, Dataset, random_split


def render(cls, size, g):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    leaf = ((xx / 0.8) ** 2 + (yy / 0.95) ** 2 < 1).float()
    img = torch.stack([0.25 * leaf, 0.6 * leaf, 0.2 * leaf])
    angle = cls * math.pi / 6 + 0.08 * torch.randn((), generator=g)
    phase = 6.28 * torch.rand((), generator=g)
    stripes = torch.sin(9 * (xx * torch.cos(angle) + yy * torch.sin(angle)) + phase)
    img = img + 0.22 * leaf * stripes * torch.tensor([1.0, -0.5, 0.3])[:, None, None]
    return (img + 0.12 * torch.randn(3, size, size, generator=g)).clamp(0, 1)


def jitter(img):
    """photometric + geometric variation seen on the phone pictures"""
    if random.random() < 0.8:
        s = img.shape[-1]
        h, w = random.randint(6, 12), random.randint(6, 12)
        top, left = random.randint(0, s - h), random.randint(0, s - w)
        img = img.clone()
        img[:, top:top + h, left:left + w] = random.random()
    if random.random() < 0.7:
        img = torch.roll(img, (random.randint(-5, 5), random.randint(-5, 5)), dims=(1, 2))
    gain = 1 + random.uniform(-0.5, 0.5)
    img = img * gain + 0.25 * torch.randn_like(img)
    return img.clamp(0, 1)


class LeafPhotos(Dataset):
    def __init__(self, per_class, classes, size, seed, transform=None):
        g = torch.Generator().manual_seed(seed)
        self.items = [(render(c, size, g), c) for c in range(classes) for _ in range(per_class)]
        self.transform = transform

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        img, label = self.items[i]
        if self.transform is not None:
            img = self.transform(img)
        return (img - 0.35) / 0.25, label


def build_loaders(cfg, seed, batch_size):
    photos = LeafPhotos(cfg["images_per_class"], cfg["classes"], cfg["size"], seed, transform=jitter)
    n_val = int(len(photos) * cfg["val_fraction"])
    train, val = random_split(photos, [len(photos) - n_val, n_val], generator=torch.Generator().manual_seed(seed))
    return DataLoader(train, batch_size=batch_size, shuffle=True), DataLoader(val, batch_size=128)
