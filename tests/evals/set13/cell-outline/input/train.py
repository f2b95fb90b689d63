import numpy as np
import torch
import yaml
from torch import nn

import losses


class OutlineNet(nn.Module):
    def __init__(self, w=16):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(1, w, 3, padding=1), nn.ReLU(), nn.Conv2d(w, w, 3, padding=2, dilation=2),
                                   nn.ReLU(), nn.Conv2d(w, w, 3, padding=1), nn.ReLU())
        self.region = nn.Conv2d(w, 1, 1)
        self.outline = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        h = self.trunk(x)
        return {"region": self.region(h), "outline": self.outline(h)}


def iou(a, b):
    return ((a & b).sum() / (a | b).sum().clamp(min=1)).item()


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    torch.manual_seed(cfg["seed"])
    z = np.load(cfg["tiles"])
    x = torch.from_numpy(z["image"])[:, None].float() / 255 - 0.45
    m = torch.from_numpy(z["mask"])[:, None].float()
    x, xv, m, mv = x[:256], x[256:], m[:256], m[256:]
    net = OutlineNet()
    opt = torch.optim.Adam(net.parameters(), lr=cfg["lr"])
    for epoch in range(cfg["epochs"]):
        sums, n = {}, 0
        for rows in torch.randperm(len(x)).split(cfg["batch"]):
            loss, parts = losses.total(net(x[rows]), m[rows], cfg["terms"], epoch)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            for k, v in {"total": loss.item(), **parts}.items():
                sums[k] = sums.get(k, 0.0) + v
            n += 1
        with torch.no_grad():
            out = net(xv)
        scores = {"iou": iou(out["region"] > 0, mv > 0.5), "outline_iou": iou(out["outline"] > 0, losses.outline_of(mv) > 0.5)}
        print(f"[{epoch:02d}] " + " ".join(f"{k}={v / n:.4f}" for k, v in sums.items()) + " || "
              + " ".join(f"{k}={v:.3f}" for k, v in scores.items()), flush=True)


if __name__ == "__main__":
    main()
