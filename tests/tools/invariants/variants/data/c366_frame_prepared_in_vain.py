"""A table of rides is cleaned on lines of their own; the frame goes on as it was read."""

import numpy as np
import pandas as pd
import torch
from torch import nn


def load(path):
    rides = pd.read_csv(path)
    rides.dropna().reset_index(drop=True)  # FAULT C366
    rides["speed"].clip(0, 60)  # FAULT C366
    return rides


class Rides:
    def __init__(self, path):
        self.frame = pd.read_parquet(path)
        self.frame.sort_values("started")  # FAULT C366

    def arrays(self):
        return self.frame[["hour", "speed"]].to_numpy(np.float32), self.frame["fare"].to_numpy(np.float32)


def main():
    rides, more = load("rides.csv"), Rides("more.parquet")
    x, y = torch.tensor(rides[["hour", "speed"]].to_numpy(np.float32)), torch.tensor(rides["fare"].to_numpy(np.float32))
    net = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x)[:, 0], y)
        loss.backward()
        optimizer.step()
    print(more.arrays()[0].shape, loss.item())


main()
