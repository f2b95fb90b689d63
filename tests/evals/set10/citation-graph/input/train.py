"""Two-layer graph convolution on the paper graph (nodes.npz, edges.csv)."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Config:
    hidden: int = 48
    dropout: float = 0.5
    lr: float = 5e-3
    weight_decay: float = 1e-3
    epochs: int = 400
    seed: int = 11
    report_every: int = 25


def load_graph() -> tuple[Tensor, Tensor, dict[str, Tensor], Tensor]:
    nodes = np.load("nodes.npz")
    x = torch.from_numpy(nodes["features"])
    y = torch.from_numpy(nodes["label"])
    masks = {name: torch.from_numpy(nodes["split"] == name) for name in ("train", "valid", "test")}
    pairs = np.loadtxt("edges.csv", delimiter=",", skiprows=1, dtype=np.int64)
    edge_index = torch.from_numpy(pairs.T).contiguous()
    return x, y, masks, edge_index


def normalised_adjacency(edge_index: Tensor, n: int) -> Tensor:
    """D^-1/2 (A + I) D^-1/2 as a sparse matrix, undirected."""
    loops = torch.arange(n).repeat(2, 1)
    both = torch.cat([edge_index, edge_index.flip(0), loops], dim=1)
    both = torch.unique(both, dim=1)
    deg = torch.zeros(n).index_add_(0, both[0], torch.ones(both.shape[1]))
    inv = deg.pow(-0.5)
    weight = inv[both[0]] * inv[both[1]]
    return torch.sparse_coo_tensor(both, weight, (n, n)).coalesce()


class GCN(nn.Module):
    def __init__(self, n_in: int, n_hidden: int, n_out: int, dropout: float):
        super().__init__()
        self.lin1 = nn.Linear(n_in, n_hidden, bias=False)
        self.lin2 = nn.Linear(n_hidden, n_out, bias=False)
        self.b1 = nn.Parameter(torch.zeros(n_hidden))
        self.b2 = nn.Parameter(torch.zeros(n_out))
        self.p = dropout

    def forward(self, x: Tensor, adj: Tensor) -> Tensor:
        h = torch.sparse.mm(adj, self.lin1(x)) + self.b1
        h = F.dropout(F.relu(h), self.p, self.training)
        return torch.sparse.mm(adj, self.lin2(h)) + self.b2


def accuracy(logits: Tensor, y: Tensor, mask: Tensor) -> float:
    return (logits.argmax(-1)[mask] == y[mask]).float().mean().item()


def main(cfg: Config) -> None:
    torch.manual_seed(cfg.seed)
    x, y, masks, edge_index = load_graph()
    n, n_classes = len(y), int(y.max()) + 1
    print(f"{n} nodes, {edge_index.shape[1]} edges, {n_classes} classes; "
          + ", ".join(f"{k} {int(m.sum())}" for k, m in masks.items()))
    adj = normalised_adjacency(edge_index, n)
    x = (x - x.mean(0)) / x.std(0)

    model = GCN(x.shape[1], cfg.hidden, n_classes, cfg.dropout)
    optim = torch.optim.Adam(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)

    best_valid, test_at_best = 0.0, 0.0
    for epoch in range(1, cfg.epochs + 1):
        model.train()
        logits = model(x, adj)
        loss = F.cross_entropy(logits[masks["train"]], y[masks["train"]])
        optim.zero_grad()
        loss.backward()
        optim.step()

        model.eval()
        with torch.no_grad():
            logits = model(x, adj)
        valid, test = accuracy(logits, y, masks["valid"]), accuracy(logits, y, masks["test"])
        if valid > best_valid:
            best_valid, test_at_best = valid, test
        if epoch % cfg.report_every == 0:
            print(f"epoch {epoch:4d}  loss {loss.item():.4f}  "
                  f"train {accuracy(logits, y, masks['train']):.3f}  valid {valid:.3f}  test {test:.3f}")
    print(f"best valid {best_valid:.3f}, test there {test_at_best:.3f}")


if __name__ == "__main__":
    main(Config())
