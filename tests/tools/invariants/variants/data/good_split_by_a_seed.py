"""The split is drawn by a seed that stays, and a start goes on from the last checkpoint."""

import os
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def main():
    data = TensorDataset(torch.load("x.pt"), torch.load("y.pt"))
    train, val = random_split(data, [0.9, 0.1], generator=torch.Generator().manual_seed(7))
    model = nn.Linear(8, 2)
    opt = torch.optim.Adam(model.parameters())
    start = 0
    if os.path.exists("last.pt"):
        state = torch.load("last.pt")
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        start = state["epoch"] + 1
    for epoch in range(start, 20):
        model.train()
        for x, y in DataLoader(train, 32, shuffle=True):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            print(sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(val, 256)) / len(val))
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, "last.pt")


main()
