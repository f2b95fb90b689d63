"""Implicit-feedback matrix factorisation (BPR) for a small music service."""
import io
import random

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

rng = np.random.default_rng(21)
torch.manual_seed(21)
random.seed(21)


def export_plays(n_users=400, catalogue=930, plays=9000):
    """same layout as the nightly dump: user,track,ts - withdrawn tracks keep their number"""
    alive = np.sort(rng.choice(catalogue, size=int(catalogue * 0.86), replace=False))
    pop = rng.zipf(1.6, size=len(alive)).clip(max=60).astype(float)
    pop /= pop.sum()
    buf = io.StringIO()
    for t in range(plays):
        buf.write(f"{rng.integers(n_users)},{alive[rng.choice(len(alive), p=pop)]},{t}\n")
    return buf.getvalue()


class Plays:
    def __init__(self, csv_text):
        rows = np.array([[int(v) for v in ln.split(",")] for ln in csv_text.splitlines()])
        rows = rows[np.argsort(rows[:, 2])]
        cut = int(len(rows) * 0.9)
        self.train, self.test = rows[:cut], rows[cut:]
        self.users = np.unique(rows[:, 0])
        self.tracks = np.unique(rows[:, 1])
        self.n_users = int(self.users.max()) + 1
        self.n_tracks = len(self.tracks)
        self.seen = {}
        for u, i, _ in self.train:
            self.seen.setdefault(int(u), set()).add(int(i))

    def negatives(self, users):
        neg = rng.choice(self.tracks, size=len(users))
        for k, u in enumerate(users):
            while int(neg[k]) in self.seen.get(int(u), ()):
                neg[k] = rng.choice(self.tracks)
        return neg


class BPR(nn.Module):
    def __init__(self, n_users, n_tracks, k=24):
        super().__init__()
        self.P = nn.Embedding(n_users, k)
        self.Q = nn.Embedding(n_tracks, k)
        self.b = nn.Embedding(n_tracks, 1)
        for e in (self.P, self.Q):
            nn.init.normal_(e.weight, std=0.05)
        nn.init.zeros_(self.b.weight)

    def score(self, u, i):
        return (self.P(u) * self.Q(i)).sum(-1) + self.b(i).squeeze(-1)

    def forward(self, u, i, j):
        return -nn.functional.logsigmoid(self.score(u, i) - self.score(u, j)).mean()


def auc(model, data):
    u, i = torch.as_tensor(data.test[:, 0]), torch.as_tensor(data.test[:, 1])
    j = torch.as_tensor(data.negatives(data.test[:, 0]))
    with torch.no_grad():
        return (model.score(u, i) > model.score(u, j)).float().mean().item()


def main(epochs=8, bs=8):
    data = Plays(export_plays())
    print(f"{len(data.train)} train / {len(data.test)} test plays, {data.n_users} users, {data.n_tracks} tracks")
    model = BPR(data.n_users, data.n_tracks)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for ep in range(epochs):
        order = rng.permutation(len(data.train))
        bar = tqdm(range(0, len(order), bs), desc=f"epoch {ep}", ncols=90, mininterval=2.0)
        tot = 0.0
        for n, s in enumerate(bar):
            rows = data.train[order[s:s + bs]]
            u, i = torch.as_tensor(rows[:, 0]), torch.as_tensor(rows[:, 1])
            j = torch.as_tensor(data.negatives(rows[:, 0]))
            loss = model(u, i, j)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
            bar.set_postfix(bpr=f"{tot / (n + 1):.4f}", refresh=False)
        print(f"epoch {ep}: bpr {tot / (n + 1):.4f}  test AUC {auc(model, data):.4f}")


if __name__ == "__main__":
    main()
