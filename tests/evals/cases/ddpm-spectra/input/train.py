"""Synthetic infrared spectra (one or two bands on 24 points) from a small DDPM."""
import copy

import torch

from diffusion import Denoiser, Diffusion

POINTS, STEPS = 24, 100


def spectra(n, gen):
    grid = torch.linspace(0, 1, POINTS)
    c = torch.where(torch.rand(n, 1, generator=gen) < 0.5, 0.3, 0.7) + 0.03 * torch.randn(n, 1, generator=gen)
    band = torch.exp(-((grid - c) / 0.07) ** 2)
    return 3 * band - 0.5


def distance(a, b):
    """Energy distance of two samples."""
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


def main():
    torch.manual_seed(8)
    gen = torch.Generator().manual_seed(8)
    real = spectra(4000, gen)
    held = spectra(500, gen)
    net = Denoiser(POINTS)
    shadow = copy.deepcopy(net)
    diffusion = Diffusion(STEPS)
    opt = torch.optim.AdamW(net.parameters(), lr=1.5e-3)
    floor = distance(spectra(500, gen), held)
    for it in range(1, 2501):
        x0 = real[torch.randint(0, len(real), (128,))]
        loss = diffusion.loss(net, x0)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        with torch.no_grad():
            for s, p in zip(shadow.parameters(), net.parameters()):
                s.lerp_(p, 0.01)
        if it % 250 == 0:
            fake = diffusion.sample(shadow, 500, POINTS)
            print(f"it={it} eps_mse={loss.item():.4f} sample_min={fake.min():.2f} sample_max={fake.max():.2f} "
                  f"energy={distance(fake, held):.4f} (real against real {floor:.4f})")


if __name__ == "__main__":
    main()
