import torch
import torch.nn as nn
import torch.nn.functional as F


class Writer(nn.Module):
    def __init__(self, words=60, width=32):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.block = nn.TransformerEncoderLayer(width, 4, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, ids):
        return self.out(self.block(self.embed(ids)))  # FAULT C157


def train(loader):
    net = Writer().cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for ids in loader:
        logits = net(ids)[:, :-1]
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def half(q, k, v, blocked):
    scores = q.half() @ k.half().transpose(-2, -1)
    scores = scores.masked_fill(blocked, -1e10)  # FAULT C174
    return scores.softmax(-1) @ v.half()


train([torch.zeros(2, 9).long()])
half(torch.randn(2, 5, 8), torch.randn(2, 5, 8), torch.randn(2, 5, 8), torch.zeros(2, 5, 5).bool())
