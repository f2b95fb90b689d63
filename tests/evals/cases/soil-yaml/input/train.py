"""Soil moisture from satellite bands; hyper-parameters in config.yaml."""
import argparse
import pprint
import torch
import torch.nn as nn
import yaml

DEFAULTS = {"optimizer": {"name": "adam", "lr": 1.0e-5, "weight_decay": 0.0}, "model": {"hidden": 48, "depth": 2},
            "train": {"epochs": 10, "batch_size": 64}, "seed": 0}


def merge(base, override):
    """Values from the file win over the defaults."""
    out = dict(base)
    for key, value in (override or {}).items():
        if isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = merge(out[key], value)
        elif key in out:
            out[key] = type(out[key])(value)
    return out


def build(cfg, n_in):
    layers, w = [], n_in
    for _ in range(cfg["depth"]):
        layers += [nn.Linear(w, cfg["hidden"]), nn.ReLU()]
        w = cfg["hidden"]
    return nn.Sequential(*layers, nn.Linear(w, 1), nn.Flatten(0))


def bands(n, seed):
    g = torch.Generator().manual_seed(5)
    w = torch.randn(9, generator=g) / 3
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 9, generator=g)
    return x, torch.tanh(x @ w) + 0.3 * x[:, 0] * x[:, 1] + 0.1 * torch.randn(n, generator=g)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", default="config.yaml")
    cfg = merge(DEFAULTS, yaml.safe_load(open(ap.parse_args().config)))
    torch.manual_seed(cfg["seed"])
    x, y = bands(3000, 1)
    xv, yv = bands(600, 2)
    net = build(cfg["model"], 9)
    opt = torch.optim.Adam(net.parameters(), lr=cfg["optimizer"]["lr"], weight_decay=cfg["optimizer"]["weight_decay"])
    print("model:", pprint.pformat(cfg["model"]), "| parameters:", sum(p.numel() for p in net.parameters()))
    for ep in range(cfg["train"]["epochs"]):
        tot = 0.0
        for idx in torch.randperm(len(x)).split(cfg["train"]["batch_size"]):
            loss = (net(x[idx]) - y[idx]).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * len(idx) / len(x)
        with torch.no_grad():
            r2 = 1 - ((net(xv) - yv).square().mean() / yv.var()).item()
        print(f"epoch: {ep:02d}  mse: {tot:.5f}  r2(val): {r2:.4f}")


if __name__ == "__main__":
    main()
