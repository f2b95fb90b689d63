import time

import numpy as np
import torch
import torch.nn as nn

from catalog import GENRES, Catalog


class TwoTower(nn.Module):
    def __init__(self, n_users, n_shows, dim=24):
        super().__init__()
        self.users = nn.Embedding(n_users, dim)
        self.shows = nn.Embedding(n_shows, dim)
        self.genres = nn.Embedding(GENRES, dim)
        self.mix = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        for e in (self.users, self.shows, self.genres):
            nn.init.normal_(e.weight, std=0.1)

    def forward(self, u, s, g):
        item = self.mix(torch.cat([self.shows(s), self.genres(g)], -1))
        return (self.users(u) * item).sum(-1)


class Stream:
    def __init__(self, rows, size, rng=None):
        self.rows, self.size, self.rng = torch.from_numpy(rows), size, rng

    def __iter__(self):
        order = torch.arange(len(self.rows)) if self.rng is None else torch.randperm(len(self.rows), generator=self.rng)
        for idx in order.split(self.size):
            yield self.rows[idx].unbind(1)


def run_epoch(model, stream, opt=None):
    tot = n = hit = 0
    for u, s, g, y in stream:
        with torch.set_grad_enabled(opt is not None):
            z = model(u, s, g)
            loss = nn.functional.binary_cross_entropy_with_logits(z, y.float())
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()
        tot += loss.item() * len(y)
        hit += ((z > 0).long() == y).sum().item()
        n += len(y)
    return tot / n, hit / n


def main():
    torch.manual_seed(0)
    train, held = Catalog().split()
    n_users = int(train[:, 0].max()) + 1
    n_shows = len(np.unique(train[:, 1])) + 1
    print(f"{len(train)} plays, {n_users} users, {n_shows - 1} shows")
    model = TwoTower(n_users, n_shows)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    rng = torch.Generator().manual_seed(1)
    t0 = time.time()
    for epoch in range(8):
        a = run_epoch(model, Stream(train, 128, rng), opt)
        b = run_epoch(model, Stream(held, 256))
        print(f"epoch:{epoch}\ttrain_bce:{a[0]:.4f}\ttrain_acc:{a[1]:.3f}\theld_bce:{b[0]:.4f}\theld_acc:{b[1]:.3f}\tt:{time.time() - t0:.1f}")


if __name__ == "__main__":
    main()
