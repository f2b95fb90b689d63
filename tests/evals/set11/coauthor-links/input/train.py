"""Link prediction on the co-author graph: a two-layer graph encoder with a dot-product decoder.

edges_2019_2023.csv is split into train / val / test, edges_2024.csv holds the links that appeared afterwards.
"""
from dataclasses import dataclass
import json

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Settings:
    seed: int = 1
    dim: int = 64
    val: float = 0.1
    test: float = 0.1
    epochs: int = 150
    lr: float = 0.01
    weight_decay: float = 1e-5
    patience: int = 40


class Encoder(nn.Module):
    def __init__(self, n_nodes, dim):
        super().__init__()
        self.emb = nn.Embedding(n_nodes, dim)
        nn.init.normal_(self.emb.weight, std=0.1)
        self.lin = nn.ModuleList([nn.Linear(dim, dim), nn.Linear(dim, dim)])
        self.skip = nn.Linear(dim, dim)

    def forward(self, adj):
        x = self.emb.weight
        h = F.relu(self.lin[0](adj @ x))
        return self.skip(x) + self.lin[1](adj @ h)


def read_edges(path):
    return torch.from_numpy(np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64))


def split_edges(edges, s, gen):
    order = torch.randperm(len(edges), generator=gen)
    n_val, n_test = int(s.val * len(edges)), int(s.test * len(edges))
    return edges[order[n_val + n_test:]], edges[order[:n_val]], edges[order[n_val:n_val + n_test]]


def normalised_adjacency(edges, n):
    a = torch.eye(n)
    a[edges[:, 0], edges[:, 1]] = 1.0
    a = torch.maximum(a, a.T)
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d[None]


def sample_negatives(k, n, known, gen):
    out = []
    while len(out) < k:
        for u, v in torch.randint(0, n, (2 * k, 2), generator=gen).tolist():
            if u != v and (u, v) not in known:
                out.append((u, v))
    return torch.tensor(out[:k])


def score(z, edges):
    return (z[edges[:, 0]] * z[edges[:, 1]]).sum(-1)


def auc(pos, neg):
    s = torch.cat([pos, neg])
    rank = s.argsort().argsort().double() + 1
    return ((rank[: len(pos)].sum() - len(pos) * (len(pos) + 1) / 2) / (len(pos) * len(neg))).item()


def main():
    s = Settings()
    torch.manual_seed(s.seed)
    gen = torch.Generator().manual_seed(s.seed)
    edges, later = read_edges("edges_2019_2023.csv"), read_edges("edges_2024.csv")
    n = int(torch.cat([edges, later]).max()) + 1
    known = {tuple(e) for e in torch.cat([edges, later]).tolist()}
    train, val, test = split_edges(edges, s, gen)
    held = {name: (e, sample_negatives(len(e), n, known, gen)) for name, e in
            [("val", val), ("test", test), ("2024", later)]}
    adj = normalised_adjacency(train, n)
    print(f"{n} nodes, {len(edges)} edge rows: train {len(train)} val {len(val)} test {len(test)}, 2024: {len(later)}")

    model = Encoder(n, s.dim)
    opt = torch.optim.Adam(model.parameters(), lr=s.lr, weight_decay=s.weight_decay)
    best, best_state, stale = 0.0, None, 0
    log = open("metrics.jsonl", "w")
    for epoch in range(1, s.epochs + 1):
        model.train()
        neg = sample_negatives(len(train), n, known, gen)
        z = model(adj)
        logits = torch.cat([score(z, train), score(z, neg)])
        labels = torch.cat([torch.ones(len(train)), torch.zeros(len(neg))])
        loss = F.binary_cross_entropy_with_logits(logits, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()

        model.eval()
        with torch.no_grad():
            z = model(adj)
            a = auc(*(score(z, e) for e in held["val"]))
        log.write(json.dumps({"epoch": epoch, "loss": round(loss.item(), 4), "val_auc": round(a, 4)}) + "\n")
        if epoch % 5 == 0 or epoch == 1:
            print(f"epoch {epoch:3d}  loss {loss.item():.4f}  val auc {a:.4f}", flush=True)
        if a > best + 1e-4:
            best, best_state, stale = a, {k: v.clone() for k, v in model.state_dict().items()}, 0
        else:
            stale += 1
            if stale >= s.patience:
                print(f"stopped at epoch {epoch}")
                break

    model.load_state_dict(best_state)
    model.eval()
    with torch.no_grad():
        z = model(adj)
        res = {name: auc(score(z, p), score(z, q)) for name, (p, q) in held.items()}
    print("best model: " + "  ".join(f"{k} auc {v:.4f}" for k, v in res.items()))


if __name__ == "__main__":
    main()
