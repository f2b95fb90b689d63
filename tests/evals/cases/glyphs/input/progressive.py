import torch
import torch.nn.functional as F
from torch.utils.data import Dataset


class Glyphs(Dataset):
    """Synthetic 28x28 glyphs; served at `self.side` pixels (progressive resizing)."""

    N_CLASSES = 10

    def __init__(self, n, seed, schedule=None):
        proto = torch.rand(self.N_CLASSES, 1, 28, 28, generator=torch.Generator().manual_seed(1234))
        proto = (proto > 0.5).float()
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, self.N_CLASSES, (n,), generator=g)
        self.x = proto[self.y] + 0.9 * torch.randn(n, 1, 28, 28, generator=g)
        self.schedule = schedule
        self.side = schedule[0] if schedule else 28

    def set_epoch(self, epoch):
        if self.schedule:
            self.side = self.schedule[min(epoch, len(self.schedule) - 1)]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = self.x[i]
        if self.side != img.shape[-1]:
            img = F.interpolate(img[None], size=self.side, mode="bilinear", antialias=True)[0]
        return img, self.y[i]
