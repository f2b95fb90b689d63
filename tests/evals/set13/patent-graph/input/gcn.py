#!/usr/bin/env python
"""Two-layer GCN on the patent citation graph (full batch)."""
import argparse
import csv
import numpy as np
import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--epochs", type=int, default=120)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--wd", type=float, default=1e-3)
parser.add_argument("--dropout", type=float, default=0.5)
args = parser.parse_args()
torch.manual_seed(3)
torch.set_num_threads(1)


def load_graph():
    nodes = list(csv.DictReader(open("nodes.csv")))
    pos = {int(n["patent"]): i for i, n in enumerate(nodes)}
    y = torch.tensor(["ABCDEFG".index(n["section"]) for n in nodes])
    split = np.array([n["split"] for n in nodes])
    src, dst = [], []
    for e in csv.DictReader(open("cites.csv")):
        src.append(pos[int(e["src"])]); dst.append(pos[int(e["dst"])])
    x = torch.from_numpy(np.load("terms.npz")["bow"]).float()
    assert len(x) == len(y)
    return x, y, torch.tensor([src + dst, dst + src]), split


def normalised_adj(edges, n):
    i = torch.cat([edges, torch.arange(n).repeat(2, 1)], 1)
    deg = torch.bincount(i[0], minlength=n).float()
    w = deg[i[0]].rsqrt() * deg[i[1]].rsqrt()
    return torch.sparse_coo_tensor(i, w, (n, n)).coalesce()


class GCN(torch.nn.Module):
    def __init__(self, d, h, c):
        super().__init__()
        self.l1, self.l2 = torch.nn.Linear(d, h), torch.nn.Linear(h, c)

    def forward(self, x, A):
        x = F.dropout(x, args.dropout, self.training)
        x = F.relu(torch.sparse.mm(A, self.l1(x)))
        x = F.dropout(x, args.dropout, self.training)
        return torch.sparse.mm(A, self.l2(x))


x, y, edges, split = load_graph()
x = x / x.sum(1, keepdim=True).clamp(min=1)
A = normalised_adj(edges, len(x))
m = {s: torch.from_numpy(split == s) for s in ("train", "val", "test")}
print(f"nodes {len(x)} edges {edges.shape[1] // 2} features {x.shape[1]} train/val/test {[int(v.sum()) for v in m.values()]}")
print(f"edge homophily {(y[edges[0]] == y[edges[1]]).float().mean():.3f}")
net = GCN(x.shape[1], args.hidden, 7)
opt = torch.optim.Adam(net.parameters(), args.lr, weight_decay=args.wd)
best = (0, 0)
for ep in range(1, args.epochs + 1):
    net.train()
    loss = F.cross_entropy(net(x, A)[m["train"]], y[m["train"]])
    opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad():
        ok = net(x, A).argmax(1) == y
    acc = {s: ok[v].float().mean().item() for s, v in m.items()}
    best = max(best, (acc["val"], acc["test"]))
    if ep % 10 == 0:
        print(f"epoch {ep:3d} loss {loss.item():.3f} " + " ".join(f"{k} {v:.3f}" for k, v in acc.items()))
print(f"best val {best[0]:.3f} -> test {best[1]:.3f}")
