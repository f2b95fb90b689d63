"""Siamese encoder for duplicate product listings (contrastive loss, Hadsell et al. 2006)."""
import argparse
import random

import numpy as np
import torch
import torch.nn as nn


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--margin", type=float, default=1.0)
    p.add_argument("--max-norm", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=11)
    return p.parse_args()


class Catalogue:
    """items with attribute vectors; several sellers list the same item with slightly edited attributes"""

    def __init__(self, n_items=900, dim=40, rng=None):
        self.rng = rng
        self.base = rng.normal(size=(n_items, dim)).astype("float32")
        self.listings = []
        for item in range(n_items):
            n = rng.integers(2, 5)
            for _ in range(n):
                edits = rng.random(dim) < 0.15
                vec = self.base[item].copy()
                vec[edits] += rng.normal(scale=0.7, size=edits.sum()).astype("float32")
                self.listings.append((item, vec))
        # a few sellers simply re-post a listing
        for k in rng.choice(len(self.listings), size=25, replace=False):
            self.listings.append(self.listings[k])
        self.by_item = {}
        for k, (item, _) in enumerate(self.listings):
            self.by_item.setdefault(item, []).append(k)

    def pairs(self, n):
        out = []
        for _ in range(n):
            if random.random() < 0.5:
                item = random.randrange(len(self.base))
                a, b = random.sample(self.by_item[item], 2)
                out.append((a, b, 1.0))
            else:
                a, b = random.randrange(len(self.listings)), random.randrange(len(self.listings))
                same = self.listings[a][0] == self.listings[b][0]
                if a != b:
                    out.append((a, b, float(same)))
        return out


class Encoder(nn.Module):
    def __init__(self, dim_in=40, dim_out=24):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(dim_in, 128), nn.GELU(), nn.LayerNorm(128),
                               nn.Linear(128, 64), nn.GELU(), nn.Linear(64, dim_out))

    def forward(self, x):
        return self.f(x)


def distance(u, v):
    return (u - v).pow(2).sum(dim=1).sqrt()


def contrastive(d, same, margin):
    pull = same * d.pow(2)
    push = (1 - same) * (margin - d).clamp(min=0).pow(2)
    return (pull + push).mean()


def main():
    args = parse()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    cat = Catalogue(rng=np.random.default_rng(args.seed))
    bank = torch.from_numpy(np.stack([v for _, v in cat.listings]))
    net = Encoder(bank.shape[1])
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=1e-4)
    print(f"{len(cat.base)} items, {len(bank)} listings, {sum(p.numel() for p in net.parameters())} weights")

    step = 0
    for epoch in range(args.epochs):
        pairs = cat.pairs(6000)
        for k in range(0, len(pairs), args.batch):
            chunk = pairs[k:k + args.batch]
            a = torch.tensor([c[0] for c in chunk])
            b = torch.tensor([c[1] for c in chunk])
            same = torch.tensor([c[2] for c in chunk])
            d = distance(net(bank[a]), net(bank[b]))
            loss = contrastive(d, same, args.margin)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            gn = nn.utils.clip_grad_norm_(net.parameters(), args.max_norm)
            opt.step()
            if step % 20 == 0:
                pos, neg = d[same == 1].mean().item(), d[same == 0].mean().item()
                print(f"ep={epoch} it={step:04d} loss={loss.item():.4f} gn={gn.item():.3f} d+={pos:.3f} d-={neg:.3f}")
            step += 1
    print("done")


if __name__ == "__main__":
    main()
