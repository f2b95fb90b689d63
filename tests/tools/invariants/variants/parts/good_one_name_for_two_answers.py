import csv
from collections import defaultdict

import numpy as np
import torch
from torch import nn


def spectra(table):
    return torch.stack([torch.frombuffer(open("beans/" + t["name"], "rb").read(), dtype=torch.float32) for t in table])


def run():
    table = list(csv.DictReader(open("beans.csv")))
    kinds = sorted({t["kind"] for t in table})
    y = torch.tensor([kinds.index(t["kind"]) for t in table])
    inside = torch.tensor([i for i, t in enumerate(table) if t["part"] == "train"])
    kept = torch.tensor([i for i, t in enumerate(table) if t["part"] == "val"])
    x = spectra(table)
    x = (x - x[inside].mean()) / x[inside].std()
    net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, len(kinds)))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for turn in range(20):
        for part in inside[torch.randperm(len(inside))].split(32):
            out = net(x[part])
            loss = nn.functional.cross_entropy(out, y[part])
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            out = net(x[kept])
        ask, hit = nn.functional.cross_entropy(out, y[kept]).item(), (out.argmax(1) == y[kept]).float().mean().item()
        print(f"{turn} val loss {ask:.3f} accuracy {hit:.3f}")
    right = defaultdict(list)
    for i, k in zip(kept.tolist(), out.argmax(1).tolist()):
        right[table[i]["kind"]].append(k == y[i].item())
    for name in kinds:
        print(f"  val recall {name} {np.mean(right[name]):.2f}")


run()
