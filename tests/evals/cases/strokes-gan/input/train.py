"""Tiny stroke generator (12x12 grey images of bars)."""
import time

import torch
import torch.nn.functional as F
from torch.optim import Adam

from networks import Critic, Painter

Z, BATCH, ITERS, EVERY = 16, 32, 600, 60


def real_batch(n):
    ax = torch.arange(12)[None] - torch.randint(1, 9, (n, 1))
    bar = ((ax >= 0) & (ax < 3)).float().view(n, 1, 1, 12).expand(n, 1, 12, 12)
    vertical = (torch.rand(n) < 0.5).view(n, 1, 1, 1)
    img = 1.9 * torch.where(vertical, bar, bar.transpose(2, 3)) - 1
    return (img + 0.05 * torch.randn_like(img)).clamp(-1, 1)


def bce(score, is_real):
    target = torch.full_like(score, 0.9 if is_real else 0.0)
    return F.binary_cross_entropy_with_logits(score, target)


class Adversary:
    def __init__(self):
        self.G, self.D = Painter(Z), Critic()
        self.optG = Adam(self.G.parameters(), lr=4e-4, betas=(0.5, 0.999))
        self.optD = Adam(self.D.parameters(), lr=2e-4, betas=(0.5, 0.999))

    def iterate(self, real):
        fake = self.G(torch.randn(len(real), Z))
        fakes_for_d = fake = fake.detach()

        self.optD.zero_grad()
        lossD = bce(self.D(real), True) + bce(self.D(fakes_for_d), False)
        lossD.backward()
        self.optD.step()

        self.optG.zero_grad()
        score = self.D(fake)
        lossG = bce(score, True)
        lossG.backward()
        self.optG.step()
        return lossD.item(), lossG.item(), torch.sigmoid(score).mean().item()


@torch.no_grad()
def stroke_stats(G):
    x = G(torch.randn(256, Z))
    ink = (x > 0).float().mean().item()
    return ink, x.std().item()


if __name__ == "__main__":
    torch.manual_seed(8)
    adv, t0 = Adversary(), time.time()
    ref = real_batch(256)
    print(f"reference: ink {(ref > 0).float().mean():.3f} std {ref.std():.3f}")
    for it in range(1, ITERS + 1):
        d, g, p = adv.iterate(real_batch(BATCH))
        if it % EVERY == 0:
            ink, std = stroke_stats(adv.G)
            print(f"[{it:>5}/{ITERS}] lossD {d:.3f}  lossG {g:.3f}  D(G(z)) {p:.3f}  ink {ink:.3f}  std {std:.3f}  ({time.time() - t0:.0f}s)")
