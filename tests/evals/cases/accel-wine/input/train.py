"""Does accumulation reproduce the big batch? Same seed, same data, 1 x 128 against 8 x 16."""
import math
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Run:
    name: str
    micro_batch: int
    accum: int
    lr: float = 4e-3
    epochs: int = 6
    clip: float = 2.0


def wines(n=2048, d=13, classes=3):
    g = torch.Generator().manual_seed(8)
    z = torch.randn(n, d, generator=g)
    w1, w2 = torch.randn(d, 20, generator=g), torch.randn(20, classes, generator=g)
    logits = torch.tanh(z @ w1 / math.sqrt(d) * 1.5) @ w2
    y = (logits + 0.25 * torch.randn(n, classes, generator=g)).argmax(1)
    return TensorDataset(z, y)


def mlp(d=13, h=64, classes=3):
    return nn.Sequential(nn.Linear(d, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh(), nn.Linear(h, classes))


class Worker:
    def __init__(self, run: Run, data):
        self.run = run
        self.accelerator = Accelerator(gradient_accumulation_steps=run.accum, cpu=True)
        set_seed(31)
        model = mlp()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=run.lr)
        loader = DataLoader(data, batch_size=run.micro_batch, shuffle=True, generator=torch.Generator().manual_seed(31))
        self.model, self.loader = self.accelerator.prepare(model, loader)
        self.loss_fn = nn.CrossEntropyLoss()

    def epoch(self):
        total = n = 0
        for x, y in self.loader:
            with self.accelerator.accumulate(self.model):
                loss = self.loss_fn(self.model(x), y)
                self.accelerator.backward(loss)
                if self.accelerator.sync_gradients:
                    self.accelerator.clip_grad_norm_(self.model.parameters(), self.run.clip)
                self.optimizer.step()
                self.optimizer.zero_grad()
            total += loss.item() * len(y)
            n += len(y)
        return total / n

    def fit(self):
        history = []
        for e in range(self.run.epochs):
            history.append(self.epoch())
            self.accelerator.print(f"[{self.run.name}] epoch={e} loss={history[-1]:.5f}")
        return history


def main():
    data = wines()
    runs = [Run("1x128", 128, 1), Run("8x16", 16, 8)]
    curves = {r.name: Worker(r, data).fit() for r in runs}
    a, b = (curves[r.name] for r in runs)
    gap = max(abs(p - q) for p, q in zip(a[1:], b[1:]))
    print(f"max gap after epoch 0: {gap:.4f}  ({'same' if gap < 0.02 else 'DIFFERENT'} within 0.02)")


if __name__ == "__main__":
    main()
