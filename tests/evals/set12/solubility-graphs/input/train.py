"""Message passing regression of log solubility. Usage: python train.py [experiment]"""
import sys
from pathlib import Path

import numpy as np
import torch
import yaml
from torch import nn
from torch.nn import functional as F


def merge(base, extra):
    out = dict(base)
    for k, v in extra.items():
        out[k] = merge(base.get(k) or {}, v) if isinstance(v, dict) else v
    return out


def load_config(name):
    root = Path("configs")
    cfg = yaml.safe_load((root / "base.yaml").read_text())
    if name != "base":
        cfg = merge(cfg, yaml.safe_load((root / f"{name}.yaml").read_text()))
    return cfg


class Round(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.msg = nn.Linear(d, d)
        self.upd = nn.Linear(2 * d, d)

    def forward(self, h, adj):
        m = adj @ F.relu(self.msg(h))
        return h + F.relu(self.upd(torch.cat([h, m], -1)))


class GraphNet(nn.Module):
    def __init__(self, atom_types, hidden, rounds):
        super().__init__()
        self.embed = nn.Embedding(atom_types + 1, hidden, padding_idx=0)
        self.rounds = nn.ModuleList(Round(hidden) for _ in range(rounds))
        self.readout = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, atoms, adj):
        mask = (atoms > 0).float()[..., None]
        h = self.embed(atoms)
        for layer in self.rounds:
            h = layer(h, adj) * mask
        return self.readout(h.sum(1) / mask.sum(1)).squeeze(-1)


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "stable"
    cfg = load_config(name)
    t, o, m = cfg["train"], cfg["optim"], cfg["model"]
    torch.manual_seed(t["seed"])
    z = np.load(cfg["data"]["file"])
    atoms = torch.from_numpy(z["atoms"].astype(np.int64))
    adj = torch.from_numpy(z["bonds"].astype(np.float32))
    y = torch.from_numpy(z["logs"].astype(np.float32))
    y = (y - y.mean()) / y.std()
    n_val = int(len(y) * cfg["data"]["val_fraction"])
    perm = torch.randperm(len(y))
    val, train = perm[:n_val], perm[n_val:]
    print(f"experiment {name}: {len(train)} molecules for training, {len(val)} for validation, {t['epochs']} epochs", flush=True)

    model = GraphNet(int(atoms.max()), m["hidden"], m["rounds"])
    opt = torch.optim.SGD(model.parameters(), lr=o["lr"], momentum=o["momentum"], weight_decay=o["weight_decay"])
    for epoch in range(t["epochs"]):
        model.train()
        losses = []
        for idx in train[torch.randperm(len(train))].split(t["batch_size"]):
            loss = F.mse_loss(model(atoms[idx], adj[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            rmse = F.mse_loss(model(atoms[val], adj[val]), y[val]).sqrt().item()
        print(f"epoch {epoch:2d}  train mse {np.mean(losses):.4f}  max {max(losses):.4f}  val rmse {rmse:.4f}", flush=True)


if __name__ == "__main__":
    main()
