"""VQ auto-encoder on 1-D texture snippets."""
import argparse
import logging
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s [%(process)d] %(message)s")


class Quantiser(nn.Module):
    def __init__(self, codes, dim, commitment=0.25):
        super().__init__()
        self.embed = nn.Embedding(codes, dim)
        nn.init.uniform_(self.embed.weight, -1 / codes, 1 / codes)
        self.beta = commitment

    def forward(self, z):
        d = torch.cdist(z, self.embed.weight)
        k = d.argmin(-1)
        q = self.embed(k)
        commit = F.mse_loss(z, q.detach())
        book = F.mse_loss(q.detach(), z)
        return z + (q - z).detach(), k, book + self.beta * commit


class VQAE(nn.Module):
    def __init__(self, codes, dim=6, length=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(length, 64), nn.SiLU(), nn.Linear(64, dim))
        self.vq = Quantiser(codes, dim)
        self.dec = nn.Sequential(nn.Linear(dim, 64), nn.SiLU(), nn.Linear(64, length))

    def forward(self, x):
        q, k, aux = self.vq(self.enc(x))
        return self.dec(q), k, aux


def snippets(n, g, protos):
    x = protos[torch.randint(0, len(protos), (n,), generator=g)]
    return x * (0.9 + 0.2 * torch.rand(n, 1, generator=g)) + 0.05 * torch.randn(x.shape, generator=g)


def perplexity(k, codes):
    p = torch.bincount(k, minlength=codes).float() / len(k)
    return torch.exp(-(p * (p + 1e-10).log()).sum()).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--codes", type=int, default=32)
    ap.add_argument("--updates", type=int, default=800)
    ap.add_argument("--lr", type=float, default=2e-3)
    args = ap.parse_args()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    protos = torch.randn(24, 16, generator=g)
    net = VQAE(args.codes)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    for u in range(1, args.updates + 1):
        x = snippets(128, g, protos)
        rec, k, aux = net(x)
        recon = F.mse_loss(rec, x)
        opt.zero_grad()
        (recon + aux).backward()
        opt.step()
        if u % 50 == 0:
            logging.info("upd %d recon=%.4f aux=%.5f code_perplexity=%.2f/%d |e|=%.4f", u, recon.item(), aux.item(),
                         perplexity(k, args.codes), args.codes, net.vq.embed.weight.norm(dim=1).mean().item())


if __name__ == "__main__":
    main()
