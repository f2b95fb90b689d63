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


def main(batches, resume):
    model, optimizer = make()
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    start, best = 0, float("inf")
    if resume:
        state = torch.load("last.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        start = state["epoch"] + 1
        best = state["best"]
        print("resumed at", start, "best", best)
    best = float("inf")  # FAULT C354
    train(model, optimizer, schedule, batches, start, best)


main([], True)
