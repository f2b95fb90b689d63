"""Wind speed pairs (two stations) from a small GAN with hinge loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def wind(n, gen):
    lobe = (torch.rand(n, generator=gen) < 0.4).float()[:, None]
    base = lobe * torch.tensor([[1.2, 0.8]]) + (1 - lobe) * torch.tensor([[-0.9, -0.6]])
    z = torch.randn(n, 2, generator=gen) @ torch.tensor([[0.35, 0.2], [0.0, 0.25]])
    return base + z


def energy(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


class Generator(nn.Module):
    def __init__(self, noise=4, width=64):
        super().__init__()
        self.noise = noise
        self.net = nn.Sequential(nn.Linear(noise, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 2))

    def forward(self, n):
        return self.net(torch.randn(n, self.noise))


def critic(width=64):
    sn = nn.utils.parametrizations.spectral_norm
    return nn.Sequential(sn(nn.Linear(2, width)), nn.LeakyReLU(0.2), sn(nn.Linear(width, width)), nn.LeakyReLU(0.2), sn(nn.Linear(width, 1)))


def main():
    torch.manual_seed(12)
    gen = torch.Generator().manual_seed(12)
    held = wind(1000, gen)
    floor = energy(wind(1000, gen), held)
    g, d = Generator(), critic()
    og = torch.optim.Adam(g.parameters(), lr=5e-4, betas=(0.0, 0.9))
    od = torch.optim.Adam(d.parameters(), lr=1e-3, betas=(0.0, 0.9))
    shadow = Generator()
    shadow.load_state_dict(g.state_dict())
    shadow.requires_grad_(False)
    for it in range(1, 3001):
        for _ in range(2):
            with torch.no_grad():
                fake = g(128)
            ld = F.relu(1 - d(wind(128, gen))).mean() + F.relu(1 + d(fake)).mean()
            od.zero_grad()
            ld.backward()
            od.step()
        d.requires_grad_(False)
        lg = -d(g(128)).mean()
        og.zero_grad()
        lg.backward()
        og.step()
        d.requires_grad_(True)
        with torch.no_grad():
            for a, b in zip(shadow.parameters(), g.parameters()):
                a.lerp_(b, 0.005)
        if it % 250 == 0:
            x = shadow(1000)
            print(f"[{it:5d}] D {ld.item():.4f}  G {lg.item():+.4f}  energy {energy(x, held):.4f} (floor {floor:.4f})  "
                  f"share of the upper lobe {(x.sum(1) > 0).float().mean():.2f}")


if __name__ == "__main__":
    main()
