"""Next-value model of 32 parallel gauge streams, trained with truncated backpropagation through time.

Every gauge has its own (unknown) period and phase, which the recurrent state has to work out from the stream.
"""
import json
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Args:
    seed: int = 9
    streams: int = 32
    length: int = 1200
    val_length: int = 300
    window: int = 25
    hidden: int = 48
    dropout: float = 0.2
    epochs: int = 12
    lr: float = 4e-3


def make_streams(a):
    rng = np.random.default_rng(a.seed)
    n = a.length + a.val_length + 1
    t = np.arange(n)
    period = rng.uniform(9, 30, (a.streams, 1))
    phase = rng.uniform(0, 2 * np.pi, (a.streams, 1))
    level = rng.normal(0, 1.0, (a.streams, 1))
    wave = np.sin(2 * np.pi * t / period + phase)
    noise = 0.1 * rng.normal(size=(a.streams, n))
    return torch.tensor(level + np.sign(wave) * np.abs(wave) ** 0.5 + noise, dtype=torch.float32)


class Model(nn.Module):
    def __init__(self, hidden, dropout):
        super().__init__()
        self.rnn = nn.LSTM(1, hidden, num_layers=2, batch_first=True, dropout=dropout)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state=None):
        h, state = self.rnn(x[..., None], state)
        return self.out(self.drop(h))[..., 0], state


def detach(state):
    return tuple(s.detach() for s in state)


def run(model, x, window, opt=None):
    """One pass over the streams in time order; the state is carried from window to window."""
    state, losses = None, []
    for i in range(0, x.shape[1] - 1, window):
        inp, tgt = x[:, i:i + window], x[:, i + 1:i + window + 1]
        inp = inp[:, : tgt.shape[1]]
        pred, state = model(inp, state)
        state = detach(state)
        loss = nn.functional.mse_loss(pred, tgt)
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        losses.append(loss.item())
    return losses


def main():
    a = Args()
    torch.manual_seed(a.seed)
    data = make_streams(a)
    train, everything = data[:, : a.length + 1], data
    model = Model(a.hidden, a.dropout)
    opt = torch.optim.Adam(model.parameters(), lr=a.lr)
    print(json.dumps(asdict(a)))
    n_train = a.length // a.window
    with open("steps.jsonl", "w") as fh:
        step = 0
        for epoch in range(1, a.epochs + 1):
            model.train()
            losses = run(model, train, a.window, opt)
            for v in losses:
                step += 1
                fh.write(json.dumps({"step": step, "epoch": epoch, "loss": round(v, 5)}) + "\n")
            model.eval()
            with torch.no_grad():
                # warm the state up on the training part, score the part after it
                val = run(model, everything, a.window)[n_train:]
            print(f"epoch {epoch:2d}  first window {losses[0]:.4f}  second {losses[1]:.4f}  last {losses[-1]:.4f}  "
                  f"train mean {np.mean(losses):.4f}  val {np.mean(val):.4f}", flush=True)


if __name__ == "__main__":
    main()
