import torch
import torch.nn as nn
import torch.nn.functional as F


class GaussianProcess(nn.Module):
    def __init__(self, denoiser, timesteps=100):
        super().__init__()
        self.denoiser = denoiser
        self.timesteps = timesteps
        betas = torch.linspace(1e-4, 0.06, timesteps)
        alphas = 1.0 - betas
        cum = torch.cumprod(alphas, 0)
        self.register_buffer("betas", betas)
        self.register_buffer("alphas", alphas)
        self.register_buffer("cum", cum)

    def q_sample(self, x0, t, noise=None):
        noise = torch.randn_like(x0) if noise is None else noise
        a = self.cum[t].unsqueeze(-1)
        return a.sqrt() * x0 + (1 - a).sqrt() * noise

    def p_losses(self, x0):
        t = torch.randint(0, self.timesteps, (len(x0),), device=x0.device)
        noise = torch.randn_like(x0)
        xt = self.q_sample(x0, t)
        return F.mse_loss(self.denoiser(xt, t), noise)

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, 2)
        for i in reversed(range(self.timesteps)):
            t = torch.full((n,), i)
            eps = self.denoiser(x, t)
            x = (x - self.betas[i] / (1 - self.cum[i]).sqrt() * eps) / self.alphas[i].sqrt()
            if i > 0:
                x = x + self.betas[i].sqrt() * torch.randn_like(x)
        return x
