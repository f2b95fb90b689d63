import torch
from torch import nn


class SessionRanker(nn.Module):
    def __init__(self, n_items, dim=48):
        super().__init__()
        self.items = nn.Embedding(n_items + 1, dim, padding_idx=0)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.project = nn.Linear(dim, dim)

    def forward(self, history):
        h, _ = self.encoder(self.items(history))
        return self.project(h[:, -1]) @ self.items.weight.T

    @torch.no_grad()
    def top_k(self, history, k=10):
        scores = self(history)
        scores[:, 0] = -float("inf")
        return scores.topk(k, dim=1).indices
