"""A fine-tuning class: the optimizer is made after the model was prepared, and nobody prepares it."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tune:
    def __init__(self, steps):
        self.acc = Accelerator(gradient_accumulation_steps=steps)
        rows = TensorDataset(torch.randn(400, 7), torch.randn(400, 1))
        self.net, self.feed = self.acc.prepare(nn.Linear(7, 1), DataLoader(rows, batch_size=4, shuffle=True))
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=0.01)

    def one(self, x, y):
        with self.acc.accumulate(self.net):
            loss = nn.functional.l1_loss(self.net(x), y)
            self.acc.backward(loss)
            self.sgd.step()  # FAULT C284
            self.sgd.zero_grad()

    def all(self):
        for _ in range(3):
            for x, y in self.feed:
                self.one(x, y)


Tune(8).all()
