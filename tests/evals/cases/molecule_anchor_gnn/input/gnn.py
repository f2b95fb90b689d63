import torch
from torch import nn

from chem import N_TYPES


class MeanSumConv(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.own, self.msg = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, edge_index):
        src, dst = edge_index
        agg = torch.zeros_like(h).index_add_(0, dst, self.msg(h)[src])
        return self.norm(h + torch.relu(self.own(h) + agg))


class AnchorClassifier(nn.Module):
    def __init__(self, dim=48, depth=3):
        super().__init__()
        self.atom = nn.Embedding(N_TYPES, dim)
        self.convs = nn.ModuleList(MeanSumConv(dim) for _ in range(depth))
        self.readout = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, b):
        h = self.atom(b["types"])
        for conv in self.convs:
            h = conv(h, b["edge_index"])
        n_graphs = len(b["y"])
        pooled = torch.zeros(n_graphs, h.shape[1]).index_add_(0, b["graph_of"], h)
        pooled = pooled / torch.bincount(b["graph_of"], minlength=n_graphs)[:, None]
        return self.readout(torch.cat([h[b["anchor"]], pooled], -1)).squeeze(-1)
