import torch


class ToneBank:
    """Short clips: every source has its own pair of partials; phase, level and noise vary."""

    def __init__(self, n_sources=20, n=96, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.f = 0.03 + 0.4 * torch.rand(n_sources, 2, generator=g)
        self.g, self.n, self.k = g, n, n_sources

    def batch(self, size):
        src = torch.randint(0, self.k, (size,), generator=self.g)
        phase = 6.28 * torch.rand(size, 2, 1, generator=self.g)
        return torch.sin(6.28 * self.f[src][..., None] * torch.arange(self.n) + phase).sum(1), src

    def view(self, x):
        """log spectrum of a noisy, re-levelled copy with two bands dropped"""
        gain = 0.5 + torch.rand(len(x), 1, generator=self.g)
        noisy = x * gain + 0.7 * torch.randn(x.shape, generator=self.g)
        spec = torch.fft.rfft(noisy * torch.hann_window(self.n)).abs().log1p()
        drop = torch.randint(0, spec.shape[1] - 4, (2,), generator=self.g)
        for d in drop.tolist():
            spec[:, d:d + 4] = 0
        return spec
