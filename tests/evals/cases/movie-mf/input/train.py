import logging
import sys
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn

logging.basicConfig(stream=sys.stdout, level=logging.INFO,
                    format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
log = logging.getLogger("recsys.mf")


@dataclass
class Cfg:
    factors: int = 24
    lr: float = 0.02
    weight_decay: float = 1e-5
    batch: int = 256
    steps: int = 400
    report: int = 20


class Ratings:
    """Explicit ratings as (user, movie, stars); ids are the ones of the export file."""

    def __init__(self, users=300, movies=180, n=9000, seed=4):
        rng = np.random.default_rng(seed)
        u_vec, m_vec = rng.normal(size=(users, 4)), rng.normal(size=(movies, 4))
        popularity = 1.0 / np.arange(1, movies + 1) ** 1.15
        u = rng.integers(0, users, n)
        m = rng.choice(movies, n, p=popularity / popularity.sum())
        stars = np.clip(np.round(3.4 + 0.7 * (u_vec[u] * m_vec[m]).sum(1) + 0.4 * rng.normal(size=n)), 1, 5)
        self.user, self.movie = u + 1, m + 1
        self.stars = stars.astype(np.float32)
        self.n_users = int(len(np.unique(self.user)))
        self.n_movies = int(len(np.unique(self.movie)))

    def sample(self, k, rng):
        i = rng.integers(0, len(self.stars), k)
        return (torch.from_numpy(self.user[i]), torch.from_numpy(self.movie[i]),
                torch.from_numpy(self.stars[i]))


class BiasedMF(nn.Module):
    def __init__(self, n_users, n_movies, k):
        super().__init__()
        self.p, self.q = nn.Embedding(n_users, k), nn.Embedding(n_movies, k)
        self.bu, self.bi = nn.Embedding(n_users, 1), nn.Embedding(n_movies, 1)
        self.mu = nn.Parameter(torch.tensor(3.0))
        for e in (self.p, self.q):
            nn.init.normal_(e.weight, std=0.1)
        for e in (self.bu, self.bi):
            nn.init.zeros_(e.weight)

    def forward(self, u, i):
        return self.mu + self.bu(u).squeeze(1) + self.bi(i).squeeze(1) + (self.p(u) * self.q(i)).sum(1)


def fit(cfg: Cfg):
    torch.manual_seed(1)
    rng = np.random.default_rng(9)
    data = Ratings()
    log.info("ratings=%d users=%d movies=%d", len(data.stars), data.n_users, data.n_movies)
    model = BiasedMF(data.n_users, data.n_movies, cfg.factors)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    for step in range(1, cfg.steps + 1):
        u, i, r = data.sample(cfg.batch, rng)
        err = model(u, i) - r
        rmse = err.pow(2).mean().sqrt()
        opt.zero_grad()
        rmse.backward()
        opt.step()
        if step % cfg.report == 0:
            log.info("step %d rmse %.4f mu %.3f", step, rmse.item(), model.mu.item())


if __name__ == "__main__":
    fit(Cfg())
