"""Masks of booleans the right way round, additive masks of -inf, causal masks, relative positions, noise on scores."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, words=40, width=16):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 2, batch_first=True), 2)
        self.near = nn.Parameter(torch.zeros(64, 64))
        self.q, self.k = nn.Linear(width, width), nn.Linear(width, width)
        self.head = nn.Linear(width, words)

    def forward(self, ids, lengths):
        n = ids.shape[1]
        if lengths is None:
            return self.head(self.layers(self.embed(ids), src_key_padding_mask=(ids != 0).long() != 1))
        blank = ~(torch.arange(n)[None] < lengths[:, None])
        later = torch.triu(torch.full((n, n), float("-inf")), diagonal=1)
        x = self.layers(self.embed(ids), mask=later, src_key_padding_mask=blank)
        scores = self.q(x) @ self.k(x).transpose(1, 2) + self.near[:n, :n]
        scores = scores + (1.0 - (ids != 0).float())[:, None] * -1e4
        scores = scores + torch.randn_like(scores) * 0.1
        return self.head(scores.softmax(-1) @ x)


def tutorial(q, k, v):
    mask = torch.triu(torch.ones(q.shape[-2], q.shape[-2]), diagonal=1)
    mask = mask.float().masked_fill(mask == 1, float("-inf")).masked_fill(mask == 0, 0.0)
    later = torch.zeros(q.shape[-2], q.shape[-2])
    later[mask != 0] = float("-inf")
    other = torch.tril(torch.ones_like(mask))
    other.masked_fill_(other == 0, float("-inf"))
    mask = mask + other - 1.0
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask) + F.scaled_dot_product_attention(q, k, v, attn_mask=later)


def chosen(q, k, v, keep):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None, :].bool())


def train(loader):
    net = Encoder()
    optimizer = torch.optim.AdamW(net.parameters())
    for ids, lengths in loader:
        logits = net(ids, lengths)[:, :-1]
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


tutorial(torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8))
train([(torch.ones(2, 9).long(), torch.tensor([4, 9]))])
