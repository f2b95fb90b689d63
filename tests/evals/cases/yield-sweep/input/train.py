"""Crop yield per plot from soil and satellite features."""
import argparse
import torch
import torch.nn as nn
from settings import load


def plots(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 16, generator=g)
    ndvi, rain, soil = x[:, 0], x[:, 1], x[:, 2]
    y = 1.5 * torch.tanh(ndvi + 0.5 * rain) + 0.7 * soil * rain - 0.4 * soil ** 2 + 0.2 * torch.randn(n, generator=g)
    return x, ((y - y.mean()) / y.std())[:, None]


def build(m):
    layers, d = [], 16
    for _ in range(m["depth"]):
        layers += [nn.Linear(d, m["width"]), nn.ReLU(), nn.Dropout(m["dropout"])]
        d = m["width"]
    return nn.Sequential(*layers, nn.Linear(d, 1))


def fit(cfg, tag=""):
    torch.manual_seed(cfg["data"]["seed"])
    x, y = plots(cfg["data"]["plots"], cfg["data"]["seed"])
    k = int(0.8 * len(x))
    net = build(cfg["model"])
    o = cfg["optim"]
    kind = {"sgd": lambda p: torch.optim.SGD(p, lr=o["lr"], momentum=o["momentum"], weight_decay=o["weight_decay"]),
            "adam": lambda p: torch.optim.AdamW(p, lr=o["lr"], weight_decay=o["weight_decay"])}[o["name"]]
    opt = kind(net.parameters())
    for epoch in range(o["epochs"]):
        net.train()
        run = 0.0
        for b in torch.randperm(k).split(o["batch"]):
            loss = nn.functional.mse_loss(net(x[b]), y[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            run += loss.item() * len(b) / k
        net.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(net(x[k:]), y[k:]).item()
    print(f"{tag} epochs {epoch + 1} train_mse {run:.5f} val_mse {val:.5f}")
    return val


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", default="config.yaml")
    ap.add_argument("--set", nargs="*", default=[], dest="overrides")
    a = ap.parse_args()
    fit(load(a.config, a.overrides), "run")
