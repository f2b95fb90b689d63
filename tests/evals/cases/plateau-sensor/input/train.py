"""Gesture recognition from a 2-axis accelerometer.  Settings live in config.yaml."""
import math
import sys

import torch
import yaml
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset, random_split

from engine import Engine, History


def gestures(samples, classes, length, noise):
    t = torch.linspace(0, 1, length)
    label = torch.randint(0, classes, (samples,))
    f = 2 + label.div(2, rounding_mode="floor").float()[:, None]
    sense = 1 - 2 * (label % 2).float()[:, None]
    start = 2 * math.pi * torch.rand(samples, 1)
    x = torch.cos(2 * math.pi * f * t + start)
    y = sense * torch.sin(2 * math.pi * f * t + start)
    xy = torch.stack([x, y], 1)
    return xy + noise * torch.randn_like(xy), label


def build_network(classes):
    return nn.Sequential(
        nn.Conv1d(2, 16, 5, padding=2), nn.Tanh(), nn.AvgPool1d(2),
        nn.Conv1d(16, 24, 5, padding=2), nn.Tanh(), nn.AvgPool1d(2),
        nn.Flatten(), nn.Linear(24 * 12, 48), nn.Tanh(), nn.Linear(48, classes),
    )


def main(path="config.yaml"):
    with open(path) as fh:
        cfg = yaml.safe_load(fh)
    torch.manual_seed(cfg["seed"])
    d, t = cfg["data"], cfg["training"]
    full = TensorDataset(*gestures(**d))
    n_val = len(full) // 5
    train_set, val_set = random_split(full, [len(full) - n_val, n_val])
    net = build_network(d["classes"])
    sgd = torch.optim.SGD(net.parameters(), **t["optimiser"])
    policy = ReduceLROnPlateau(sgd, **t["plateau"])
    engine = Engine(net, nn.CrossEntropyLoss(), sgd, policy, History("history.jsonl"))
    engine.fit(DataLoader(train_set, t["batch_size"], shuffle=True), DataLoader(val_set, 256), t["epochs"], t["monitor"])


if __name__ == "__main__":
    main(*sys.argv[1:])
