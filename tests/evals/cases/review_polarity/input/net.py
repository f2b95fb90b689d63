import torch
from torch import nn


class PolarityNet(nn.Module):
    def __init__(self, vocab_size, dim=32, channels=48):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, channels, 3, padding=1)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(channels, 2)

    def forward(self, ids):
        h = torch.relu(self.conv(self.emb(ids).transpose(1, 2)))
        return self.out(self.drop(h.amax(-1)))


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return (net(x).argmax(-1) == y).float().mean().item()
