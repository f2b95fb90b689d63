import json

import torch
from torch import nn


class History:
    def __init__(self, path):
        self.fh = open(path, "w")

    def write(self, **row):
        self.fh.write(json.dumps({k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()}) + "\n")
        self.fh.flush()


class Engine:
    def __init__(self, network, criterion, optimiser, lr_policy, history):
        self.network, self.criterion = network, criterion
        self.optimiser, self.lr_policy, self.history = optimiser, lr_policy, history

    def train_epoch(self, loader):
        self.network.train()
        total = n = 0
        for x, y in loader:
            objective = self.criterion(self.network(x), y)
            self.optimiser.zero_grad()
            objective.backward()
            self.optimiser.step()
            total += objective.item() * len(y)
            n += len(y)
        return total / n

    @torch.no_grad()
    def evaluate(self, loader):
        self.network.eval()
        loss = correct = n = 0
        for x, y in loader:
            z = self.network(x)
            loss += nn.functional.cross_entropy(z, y, reduction="sum").item()
            correct += (z.argmax(1) == y).sum().item()
            n += len(y)
        return {"loss": loss / n, "accuracy": correct / n}

    def fit(self, train_loader, val_loader, epochs, monitor="accuracy"):
        for epoch in range(1, epochs + 1):
            lr = self.optimiser.param_groups[0]["lr"]
            train_loss = self.train_epoch(train_loader)
            val = self.evaluate(val_loader)
            self.lr_policy.step(val[monitor])
            self.history.write(epoch=epoch, lr=lr, train_loss=train_loss, **{f"val_{k}": v for k, v in val.items()})
            print(f"Epoch {epoch:02d}/{epochs} - loss: {train_loss:.4f} - val_loss: {val['loss']:.4f} "
                  f"- val_accuracy: {val['accuracy']:.4f} - lr: {lr:.3g}")
