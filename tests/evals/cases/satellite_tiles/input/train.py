"""Land-cover tiles with SGDR; one snapshot is kept at the end of each cycle."""
import csv
import json
import sys

import torch
from torch import nn

from tiles import tiles


class TileNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o),
                                           nn.ReLU(), nn.MaxPool2d(2))
        self.trunk = nn.Sequential(block(3, width), block(width, 2 * width))
        self.head = nn.Linear(2 * width, 4)

    def forward(self, x):
        return self.head(self.trunk(x).mean((2, 3)))


@torch.no_grad()
def score(net, x, y):
    net.eval()
    logits = net(x)
    return nn.functional.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    with open("config.json") as f:
        cfg = json.load(f)
    torch.manual_seed(cfg["seed"])
    x, y = tiles(cfg["train_tiles"], 0)
    xv, yv = tiles(cfg["valid_tiles"], 1)
    net = TileNet()
    opt = torch.optim.SGD(net.parameters(), lr=cfg["lr"], momentum=cfg["momentum"],
                          weight_decay=cfg["weight_decay"], nesterov=True)
    per_epoch = -(-len(x) // cfg["batch"])
    r = cfg["restarts"]
    sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
        opt, T_0=r["first_cycle"] * per_epoch, T_mult=r["mult"], eta_min=r["lr_min"])
    cycle_ends, at, length = set(), 0, r["first_cycle"]
    while at + length <= cfg["epochs"]:
        at += length
        cycle_ends.add(at)
        length *= r["mult"]
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow("epoch lr_start lr_end train_loss valid_loss valid_acc snapshot".split())
    snapshots = []
    for epoch in range(1, cfg["epochs"] + 1):
        net.train()
        lr_start, total = opt.param_groups[0]["lr"], 0.0
        lr_end = lr_start
        for idx in torch.randperm(len(x)).split(cfg["batch"]):
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            lr_end = opt.param_groups[0]["lr"]
            sched.step()
            total += loss.item() * len(idx)
        v_loss, v_acc = score(net, xv, yv)
        snap = epoch in cycle_ends
        if snap:
            snapshots.append({k: v.clone() for k, v in net.state_dict().items()})
        out.writerow([epoch, f"{lr_start:.5f}", f"{lr_end:.5f}", f"{total / len(x):.4f}", f"{v_loss:.4f}",
                      f"{v_acc:.4f}", int(snap)])
        sys.stdout.flush()
    probs = 0
    for s in snapshots:
        net.load_state_dict(s)
        net.eval()
        with torch.no_grad():
            probs = probs + net(xv).softmax(1)
    print(f"# snapshot ensemble of {len(snapshots)}: valid_acc {(probs.argmax(1) == yv).float().mean():.4f}")


if __name__ == "__main__":
    main()
