import torch
from torch import nn


def restore(network, path):
    state = torch.load(path, map_location="cpu", weights_only=True)
    network.load_state_dict(state["model"], assign=True)  # FAULT C289


def train(batches, path):
    network = nn.Sequential(nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, 1))
    adam = torch.optim.Adam([{"params": network.parameters(), "lr": 1e-3}])
    restore(network, path)
    for x, y in batches:
        adam.zero_grad()
        nn.functional.mse_loss(network(x), y).backward()
        adam.step()


train([], "model.pt")
