"""Next-symbol model of the loom's thread sensor."""
import math

import torch
from torch import nn

from stream import ThreadStream

SPAN, HIDDEN, EPOCHS, LR = 20, 64, 14, 4e-3


class Reader(nn.Module):
    def __init__(self, n_symbols=12, hidden=HIDDEN):
        super().__init__()
        self.emb = nn.Embedding(n_symbols, 24)
        self.rnn = nn.LSTM(24, hidden, batch_first=True)
        self.out = nn.Linear(hidden, n_symbols)

    def forward(self, x, state=None):
        h, state = self.rnn(self.emb(x), state)
        return self.out(h), state


def run(model, stream, opt=None):
    state, total, n = None, 0.0, 0
    for x, y in stream:
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = model(x, state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            opt.step()
        total, n = total + loss.item(), n + 1
    return total / n


def main():
    torch.manual_seed(12)
    fit, check = (ThreadStream("signal/threads.npy", SPAN, p) for p in ("fit", "check"))
    model = Reader()
    opt = torch.optim.Adam(model.parameters(), lr=LR)
    for epoch in range(1, EPOCHS + 1):
        model.train()
        loss = run(model, fit, opt)
        model.eval()
        with torch.no_grad():
            held = run(model, check)
        print(f"epoch {epoch:2d}  bits/symbol fit {loss / math.log(2):.3f}  check {held / math.log(2):.3f}", flush=True)


if __name__ == "__main__":
    main()
