import torch
from torch.utils.data import Dataset

SIDE = 32


class EndoscopyFrames(Dataset):
    """Bright elliptic lesion on a shaded mucosa background with its binary outline."""

    def __init__(self, n, seed, transform=None):
        g = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
        cx = 5 + (SIDE - 10) * torch.rand(n, 1, 1, generator=g)
        cy = 5 + (SIDE - 10) * torch.rand(n, 1, 1, generator=g)
        a = 3 + 3 * torch.rand(n, 1, 1, generator=g)
        b = 3 + 3 * torch.rand(n, 1, 1, generator=g)
        self.masks = ((((xx - cx) / a) ** 2 + ((yy - cy) / b) ** 2) < 1).float().unsqueeze(1)
        shade = 0.3 * torch.sin(xx / 6.0 + 6 * torch.rand(n, 1, 1, generator=g)).unsqueeze(1)
        self.images = self.masks * 0.8 + shade + 0.25 * torch.randn(n, 1, SIDE, SIDE, generator=g)
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img, msk = self.images[i], self.masks[i]
        if self.transform is not None:
            img = self.transform(img)
            msk = self.transform(msk)
        return img, msk
