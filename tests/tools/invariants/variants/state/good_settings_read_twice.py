"""Settings are read from files and read again, the second file counts; a position that a failed load sets to 0."""
import json

import torch
from torch import nn


def settings(*names):
    for name in names:
        with open(name) as file:
            found = json.load(file)
        print(len(found))
    with open("defaults.json") as file:
        found = json.load(file)
    return dict(**found)


def main(batches):
    kept = settings("a.json", "b.json")
    model = nn.Linear(8, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=kept["lr"])
    try:
        state = torch.load("last.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start, best = state["epoch"] + 1, state["best"]
    except FileNotFoundError:
        start, best = 0, float("inf")
    best = min(best, 1e9)
    for epoch in range(start, 10):
        for x, y in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        best = min(best, loss.item())
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "best": best},
                   "last.pt")
        model = nn.Linear(8, 2) if epoch == 9 else model


main([])
