import torch
from torch import nn


def make():
    model = nn.Linear(8, 2)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(model, optimizer, schedule, batches, start, best, epochs=10):
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
                        "schedule": schedule.state_dict()}, "last.pt")


class Counter:
    def __init__(self):
        self.seen = 0

    def reset(self):
        self.seen = 0

    def load_state_dict(self, state):
        self.seen = state["seen"]


def load(path, model, optimizer, schedule):
    try:
        state = torch.load(path)
    except FileNotFoundError:
        return 0, float("inf"), 0
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    schedule.load_state_dict(state["schedule"])
    return state["epoch"] + 1, state["best"], state["loss"]


def main(batches, resume, reset_best):
    model, optimizer = make()
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    counter = Counter()
    counter.reset()
    if resume:
        start, best, loss = load("last.pt", model, optimizer, schedule)
    else:
        start, best, loss = 0, float("inf"), 0.0
    if reset_best:
        best = float("inf")
    print("loss", loss)
    counter.load_state_dict(torch.load("counter.pt"))
    for _ in range(2):
        loss = model(torch.ones(1, 8)).sum()
        counter.seen += 1
        print(loss.item())
    if start > 5:
        counter.reset()
    train(model, optimizer, schedule, batches, start, best)


main([], True, False)
