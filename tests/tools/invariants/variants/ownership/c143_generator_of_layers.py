"""Layers that a generator of the class yields, in a list."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphNet(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.layers = [*self._make(dims)]  # FAULT C143
        self.norm = nn.LayerNorm(dims[-1])

    def _make(self, dims):
        for a, b in zip(dims, dims[1:]):
            yield nn.Linear(a, b)

    def forward(self, adj, x):
        for layer in self.layers:
            x = F.relu(layer(adj @ x))
        return self.norm(x)


def fit(adj, x, y, mask):
    net = GraphNet([x.shape[1], 64, 7])
    opt = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(200):
        opt.zero_grad()
        loss = F.cross_entropy(net(adj, x)[mask], y[mask])
        loss.backward()
        opt.step()
