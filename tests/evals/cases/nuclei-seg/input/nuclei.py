import torch
from torch.utils.data import Dataset


def draw_field(size, g):
    """stained field: bright round nuclei (foreground), darker elongated debris (background)"""
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    image, mask = torch.zeros(size, size), torch.zeros(size, size)
    for _ in range(int(torch.randint(2, 5, (1,), generator=g))):
        cy, cx = (torch.rand(2, generator=g) * size).tolist()
        r = 2.5 + 2.5 * float(torch.rand((), generator=g))
        disc = ((yy - cy) ** 2 + (xx - cx) ** 2) < r * r
        image[disc] = 0.9
        mask[disc] = 1.0
    for _ in range(3):
        cy, cx = (torch.rand(2, generator=g) * size).tolist()
        image[((yy - cy).abs() < 1.5) & ((xx - cx).abs() < 6)] += 0.6
    return (image + 0.2 * torch.randn(size, size, generator=g))[None], mask[None]


class NucleiSet(Dataset):
    def __init__(self, n, size=24, seed=0, train=False):
        g = torch.Generator().manual_seed(seed)
        self.fields = [draw_field(size, g) for _ in range(n)]
        self.train = train

    def __len__(self):
        return len(self.fields)

    def augment(self, image, mask):
        if torch.rand(()) < 0.5:
            image, mask = image.flip(-1), mask.flip(-1)
        if torch.rand(()) < 0.5:
            image = image.flip(-2)
        if torch.rand(()) < 0.5:
            k = int(torch.randint(1, 4, ()))
            image, mask = image.rot90(k, (-2, -1)), mask.rot90(k, (-2, -1))
        return image + 0.05 * torch.randn_like(image), mask

    def __getitem__(self, i):
        image, mask = self.fields[i]
        return self.augment(image, mask) if self.train else (image, mask)
