import torch
from torch import nn


def make():
    model = nn.Linear(8, 2)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(model, optimizer, schedule, batches, start, best, normaliser, epochs=10):
    for epoch in range(start, epochs):
        for x, y in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        schedule.step()
        if loss.item() < best:
            best = loss.item()
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "best": best,
                        "schedule": schedule.state_dict(),
                        "normaliser": normaliser.state_dict()}, "last.pt")


class Normaliser:
    def __init__(self, size):
        self.size = size
        self.reset()

    def reset(self):
        self.mean, self.count = torch.zeros(self.size), 0

    def load_state_dict(self, state):
        self.mean = state["mean"]
        self.count = state["count"]

    def state_dict(self):
        return {"mean": self.mean, "count": self.count}

    def __call__(self, x):
        self.count += len(x)
        self.mean = self.mean + (x - self.mean).sum(0) / self.count
        return x - self.mean


class Trainer:
    def __init__(self, batches):
        self.batches = batches
        self.model, self.optimizer = make()
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 10)
        self.normaliser = Normaliser(8)
        self.start, self.best = 0, float("inf")

    def resume(self, path):
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.normaliser.load_state_dict(state["normaliser"])
        self.start, self.best = state["epoch"] + 1, state["best"]

    def fit(self):
        self.normaliser.reset()  # FAULT C354
        batches = [(self.normaliser(x), y) for x, y in self.batches]
        train(self.model, self.optimizer, self.schedule, batches, self.start, self.best,
              self.normaliser)


trainer = Trainer([])
trainer.resume("last.pt")
trainer.fit()
