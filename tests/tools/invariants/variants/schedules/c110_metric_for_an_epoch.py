"""A cosine that was to wait for a plateau: it is stepped by the validation loss."""

import torch
from torch import nn


def validated(net, loader):
    net.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.mse_loss(net(x)[:, 0], y).item()
    return total / len(loader)


def fit(net, train, held, epochs):
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    lower = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        net.train()
        for x, y in train:
            loss = nn.functional.mse_loss(net(x)[:, 0], y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        error = validated(net, held)
        lower.step(error)  # FAULT C110
        print(epoch, error)
