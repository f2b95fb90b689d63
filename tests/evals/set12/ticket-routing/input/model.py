import torch
from torch import nn


class Router(nn.Module):
    """Mean of word embeddings with a gated second view, then a queue."""

    def __init__(self, vocab, queues, dim=32):
        super().__init__()
        self.words = nn.Embedding(vocab, dim, padding_idx=0)
        self.gate = nn.Linear(dim, 1)
        self.body = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, queues))

    def forward(self, ids):
        mask = (ids > 0).float()[..., None]
        e = self.words(ids)
        w = torch.sigmoid(self.gate(e)) * mask
        return self.body((e * w).sum(1) / w.sum(1).clamp_min(1e-6))


def extend_vocabulary(model, extra):
    """Append rows for new words; they start at the mean of the known ones."""
    old = model.words.weight.data
    grown = nn.Embedding(len(old) + extra, old.shape[1], padding_idx=0)
    with torch.no_grad():
        grown.weight[: len(old)] = old
        grown.weight[len(old):] = old[1:].mean(0)
    model.words = grown
    return model
