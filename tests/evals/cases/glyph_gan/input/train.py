"""DCGAN-style generator for 16x16 glyphs.

Phase 1 warms the generator up with feature matching against a fixed random critic,
phase 2 is the adversarial game.
"""
import torch
from torch import nn

from glyphs import stroke_glyphs

ZDIM, BATCH, WARMUP, TOTAL = 24, 64, 60, 400


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(ZDIM, 64 * 4 * 4)
        self.up = nn.Sequential(
            nn.BatchNorm2d(64), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1),
            nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.up(self.fc(z).view(-1, 64, 4, 4))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2),
                                  nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten())
        self.score = nn.Linear(64 * 4 * 4, 1)

    def forward(self, x):
        f = self.body(x)
        return self.score(f).squeeze(1), f


def hinge_d(real, fake):
    return torch.relu(1 - real).mean() + torch.relu(1 + fake).mean()


def step_pair(gen, critic, opt_g, opt_d, real, step):
    fake = gen(torch.randn(len(real), ZDIM))
    s_real, f_real = critic(real)
    s_fake, f_fake = critic(fake)
    match = (f_real.mean(0).detach() - f_fake.mean(0)).pow(2).mean()
    loss_g = match if step < WARMUP else -s_fake.mean() + 0.5 * match
    loss_d = hinge_d(s_real, critic(fake.detach())[0])

    if step >= WARMUP:
        opt_d.zero_grad()
        loss_d.backward(retain_graph=True)
        opt_d.step()

    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    return loss_g.item(), loss_d.item(), s_real.mean().item(), s_fake.mean().item()


def main():
    torch.manual_seed(33)
    data = stroke_glyphs(2000, 0)
    gen, critic = Generator(), Critic()
    opt_g = torch.optim.Adam(gen.parameters(), 4e-4, betas=(0.5, 0.99))
    opt_d = torch.optim.Adam(critic.parameters(), 4e-4, betas=(0.5, 0.99))
    print(f"glyphs {tuple(data.shape)}  G {sum(p.numel() for p in gen.parameters())}  "
          f"D {sum(p.numel() for p in critic.parameters())}", flush=True)
    for step in range(TOTAL):
        real = data[torch.randint(len(data), (BATCH,))]
        g, d, r, f = step_pair(gen, critic, opt_g, opt_d, real, step)
        if step % 20 == 0:
            phase = "warmup" if step < WARMUP else "game  "
            print(f"{phase} {step:4d}  G {g:+.4f}  D {d:+.4f}  real {r:+.3f}  fake {f:+.3f}", flush=True)
    with torch.no_grad():
        s = gen.eval()(torch.randn(512, ZDIM))
    print(f"done: pixel mean {s.mean():.3f} (data {data.mean():.3f}), std {s.std():.3f} (data {data.std():.3f})")


if __name__ == "__main__":
    main()
