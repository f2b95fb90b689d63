import torch


class WindFields:
    """Coarse wind speed maps; the task is to sharpen the field after a smoothing sensor."""

    def __init__(self, seed, side=48):
        self.g = torch.Generator().manual_seed(seed)
        self.side = side

    def batch(self, n):
        z = torch.randn(n, 2, self.side // 4, self.side // 4, generator=self.g)
        fine = torch.nn.functional.interpolate(z, scale_factor=4, mode="bilinear", align_corners=False)
        seen = torch.nn.functional.avg_pool2d(fine, 5, 1, 2)
        return seen + 0.02 * torch.randn(seen.shape, generator=self.g), fine
