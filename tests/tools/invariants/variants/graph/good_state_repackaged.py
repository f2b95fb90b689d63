"""State repackaged."""
import torch
from torch import nn


class LM(nn.Module):

    def __init__(self):
        super().__init__()
        self.e, self.rnn, self.o = (nn.Embedding(100, 32), nn.LSTM(32, 32), nn.Linear(32, 100))

    def forward(self, x, hidden):
        y, hidden = self.rnn(self.e(x), hidden)
        return (self.o(y), hidden)

    def init_hidden(self, n):
        return (torch.zeros(1, n, 32), torch.zeros(1, n, 32))


def repackage(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple((repackage(v) for v in h))


def train(batches):
    m = LM()
    opt = torch.optim.SGD(m.parameters(), 20.0)
    hidden = m.init_hidden(20)
    for data, targets in batches:
        opt.zero_grad()
        hidden = repackage(hidden)
        out, hidden = m(data, hidden)
        loss = nn.functional.cross_entropy(out.view(-1, 100), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 0.25)
        opt.step()
