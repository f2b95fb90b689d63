"""VQ autoencoder for short tone bursts (spectrum frames), monitors codebook perplexity."""
import itertools
import math

import torch
from torch import nn
import torch.nn.functional as F


class Quantizer(nn.Module):
    def __init__(self, n_codes, dim, beta=0.25):
        super().__init__()
        self.codes = nn.Embedding(n_codes, dim)
        self.codes.weight.data.uniform_(-1.0 / n_codes, 1.0 / n_codes)
        self.beta = beta

    def forward(self, z):
        d = z.pow(2).sum(1, keepdim=True) - 2 * z @ self.codes.weight.t() + self.codes.weight.pow(2).sum(1)
        idx = d.argmin(1)
        q = self.codes(idx)
        vq_loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        return q, idx, vq_loss


class Encoder(nn.Sequential):
    def __init__(self, d_in, dim):
        super().__init__(nn.Linear(d_in, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, dim))


class Decoder(nn.Sequential):
    def __init__(self, d_out, dim):
        super().__init__(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, d_out))


def frames(n, bins=48, seed=0):
    """one or two partials at random pitch, as a smooth spectrum"""
    g = torch.Generator().manual_seed(seed)
    grid = torch.arange(bins).float()
    f0 = torch.rand(n, 1, generator=g) * 34 + 5
    level = (torch.rand(n, 1, generator=g) > 0.5).float()
    x = torch.exp(-(grid - f0).pow(2) / 8) + level * torch.exp(-(grid - f0 * 1.25).pow(2) / 8)
    return x + 0.02 * torch.randn(n, bins, generator=g)


def perplexity(idx, n_codes):
    p = torch.bincount(idx, minlength=n_codes).float() / len(idx)
    return math.exp(-(p * (p + 1e-10).log()).sum().item())


def main():
    torch.manual_seed(3)
    bins, dim, n_codes, bs = 48, 4, 20, 128
    x_train, x_test = frames(6000), frames(1000, seed=1)
    enc, vq, dec = Encoder(bins, dim), Quantizer(n_codes, dim), Decoder(bins, dim)
    opt = torch.optim.Adam(itertools.chain(enc.parameters(), dec.parameters()), lr=1e-3)
    n_par = sum(p.numel() for m in (enc, vq, dec) for p in m.parameters())
    print(f"VQ-AE {n_par} parameters, {n_codes} codes of size {dim}")
    for epoch in range(1, 21):
        perm = torch.randperm(len(x_train))
        rec_sum = vq_sum = 0.0
        for k in range(0, len(perm) - bs + 1, bs):
            x = x_train[perm[k:k + bs]]
            q, _, vq_loss = vq(enc(x))
            rec = F.mse_loss(dec(q), x)
            loss = rec + vq_loss
            opt.zero_grad()
            loss.backward()
            opt.step()
            rec_sum += rec.item()
            vq_sum += vq_loss.item()
        with torch.no_grad():
            q, idx, _ = vq(enc(x_test))
            test = F.mse_loss(dec(q), x_test).item()
        n = len(perm) // bs
        print(f"epoch {epoch:02d} :: rec {rec_sum / n:.5f} :: vq {vq_sum / n:.6f} :: test rec {test:.5f} :: "
              f"perplexity {perplexity(idx, n_codes):.1f}/{n_codes} :: used {idx.unique().numel()}")


if __name__ == "__main__":
    main()
