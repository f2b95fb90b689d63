"""Linear probe on a frozen backbone for land-cover tiles."""
import json

import numpy as np
import torch
from torch.nn import functional as F

from model import Classifier, load_backbone


def tiles(path):
    z = np.load(path)
    x = torch.from_numpy(z["rgb"]).permute(0, 3, 1, 2).float() / 255.0
    return x, torch.from_numpy(z["cover"].astype(np.int64))


def run(cfg):
    torch.manual_seed(cfg["seed"])
    x, y = tiles(cfg["train"])
    xv, yv = tiles(cfg["val"])
    model = Classifier(len(cfg["classes"]), load_backbone(cfg["backbone"]))
    model.freeze_backbone()
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(f"{len(x)} tiles, pixel mean {x.mean():.3f} std {x.std():.3f}; trainable parameters {sum(p.numel() for p in trainable)}", flush=True)
    opt = torch.optim.SGD(trainable, lr=cfg["lr"], momentum=0.9)
    for epoch in range(cfg["epochs"]):
        model.head.train()
        total = correct = 0
        for idx in torch.randperm(len(x)).split(cfg["batch_size"]):
            out = model(x[idx])
            loss = F.cross_entropy(out, y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
            correct += (out.argmax(1) == y[idx]).sum().item()
        model.head.eval()
        with torch.no_grad():
            va = (model(xv).argmax(1) == yv).float().mean().item()
        print(f"epoch {epoch:2d}  loss {total / len(x):.4f}  train acc {correct / len(x):.3f}  val acc {va:.3f}", flush=True)


if __name__ == "__main__":
    with open("probe.json") as f:
        run(json.load(f))
