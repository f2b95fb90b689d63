import torch


class NoiseSchedule:
    def __init__(self, steps=100, lo=1e-3, hi=0.08):
        self.steps = steps
        self.betas = torch.linspace(lo, hi, steps)
        self.alphas = 1 - self.betas
        self.abar = torch.cumprod(self.alphas, 0)

    def corrupt(self, x0, t, eps=None):
        if eps is None:
            eps = torch.randn_like(x0)
        a = self.abar[t].view(-1, *[1] * (x0.dim() - 1))
        return a.sqrt() * x0 + (1 - a).sqrt() * eps

    @torch.no_grad()
    def generate(self, denoiser, shape):
        x = torch.randn(shape)
        for i in reversed(range(self.steps)):
            t = torch.full((shape[0],), i)
            eps = denoiser(x, t)
            mean = (x - self.betas[i] / (1 - self.abar[i]).sqrt() * eps) / self.alphas[i].sqrt()
            x = mean + (self.betas[i].sqrt() * torch.randn_like(x) if i > 0 else 0)
        return x
