import numpy as np

GENRES = 12


class Catalog:
    """Listening log: columns user, show, genre, finished. Show numbers come from the catalogue database."""

    def __init__(self, seed=4, users=300, shows=2500, rows=20000):
        rng = np.random.default_rng(seed)
        self.genre = rng.integers(0, GENRES, shows + 1)
        taste = rng.normal(size=(users, GENRES))
        pop = 1.0 / np.arange(1, shows + 1)
        u = rng.integers(0, users, rows)
        s = rng.choice(np.arange(1, shows + 1), size=rows, p=pop / pop.sum())
        p = 1 / (1 + np.exp(-2 * taste[u, self.genre[s]]))
        self.rows = np.stack([u, s, self.genre[s], rng.random(rows) < p], 1).astype(np.int64)

    def split(self):
        n = len(self.rows)
        return self.rows[: int(0.85 * n)], self.rows[int(0.85 * n):]
