"""Weights of steps, classes on axis 1, spans, a mean over positions, a set that is pooled on purpose after stacking."""

import torch
import torch.nn.functional as F
from torch import nn


class Reader(nn.Module):
    def __init__(self, words=50, width=16, tags=6):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.score, self.tag, self.span = nn.Linear(width, 1), nn.Linear(width, tags), nn.Linear(width, 2)

    def forward(self, ids):
        h, _ = self.rnn(self.embed(ids))
        weights = torch.softmax(self.score(h), dim=1)
        pooled = (weights * h).sum(1)
        first, last = self.span(h).log_softmax(dim=1).unbind(-1)
        classes_second = self.tag(h).transpose(1, 2).log_softmax(dim=1)
        last_step = F.log_softmax(self.tag(h[:, -1]), dim=1)
        return F.log_softmax(self.tag(pooled), dim=-1), first, last, classes_second, last_step, h.mean(dim=1)


net = Reader()
optimizer = torch.optim.Adam(net.parameters())
for ids, y in [(torch.zeros(2, 7).long(), torch.zeros(2).long())]:
    out, first, last, steps, final, _ = net(ids)
    loss = F.nll_loss(out, y) + F.nll_loss(first, y) + F.nll_loss(last, y) + F.nll_loss(final, y)
    loss = loss + F.nll_loss(steps, ids.clamp(max=5))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
