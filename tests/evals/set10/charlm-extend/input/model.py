import torch
from torch import nn


class CharGRU(nn.Module):
    def __init__(self, n_chars, d=48, h=112):
        super().__init__()
        self.embed = nn.Embedding(n_chars, d)
        self.gru = nn.GRU(d, h, batch_first=True)
        self.head = nn.Linear(h, n_chars)

    def forward(self, x, state=None):
        y, state = self.gru(self.embed(x), state)
        return self.head(y), state

    @torch.no_grad()
    def grow(self, mapping, n_chars):
        """Make room for n_chars characters. mapping[old_id] = new_id; unseen characters start neutral."""
        old_e, old_h = self.embed, self.head
        self.embed = nn.Embedding(n_chars, old_e.embedding_dim)
        self.head = nn.Linear(old_h.in_features, n_chars)
        self.head.weight.zero_()
        self.head.bias.zero_()
        for old, new in mapping.items():
            self.embed.weight[new] = old_e.weight[old]
            self.head.weight[new] = old_h.weight[old]
            self.head.bias[new] = old_h.bias[old]
        return self
