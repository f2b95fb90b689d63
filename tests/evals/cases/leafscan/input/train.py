"""LeafScan: plant disease patches, small conv net, averaged weights for validation."""
import json
import logging

import torch
from torch import nn
from torch.nn import functional as F

from averaging import WeightAverager
from data import SPECIES, loaders

logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s: %(message)s")
log = logging.getLogger("leafscan")


def conv_block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.SiLU(),
        nn.AvgPool2d(2),
    )


class LeafNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = conv_block(3, width)
        self.mid = conv_block(width, 2 * width)
        self.head = nn.Linear(2 * width * 16, len(SPECIES))

    def forward(self, x):
        return self.head(self.mid(self.stem(x)).flatten(1))


class Runner:
    def __init__(self, cfg):
        torch.manual_seed(cfg["seed"])
        self.cfg = cfg
        self.net = LeafNet(cfg["width"])
        self.avg = WeightAverager(self.net, cfg["ema_decay"])
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=cfg["lr"], weight_decay=1e-4)
        self.train_dl, self.val_dl = loaders(cfg["batch"])
        self.history = open("history.jsonl", "w")

    def fit_epoch(self):
        self.net.train()
        seen = hit = 0
        total = 0.0
        for x, y in self.train_dl:
            out = self.net(x)
            objective = F.cross_entropy(out, y)
            self.opt.zero_grad(set_to_none=True)
            objective.backward()
            self.opt.step()
            self.avg.step(self.net)
            total += objective.item() * len(y)
            hit += (out.argmax(1) == y).sum().item()
            seen += len(y)
        return total / seen, hit / seen

    @torch.no_grad()
    def validate(self):
        net = self.avg.shadow
        net.eval()
        total = hit = seen = 0
        for x, y in self.val_dl:
            out = net(x)
            total += F.cross_entropy(out, y, reduction="sum").item()
            hit += (out.argmax(1) == y).sum().item()
            seen += len(y)
        return total / seen, hit / seen

    def run(self):
        n = sum(p.numel() for p in self.net.parameters())
        log.info("LeafNet with %d parameters, %d train batches", n, len(self.train_dl))
        best = 0.0
        for ep in range(1, self.cfg["epochs"] + 1):
            tl, ta = self.fit_epoch()
            vl, va = self.validate()
            best = max(best, va)
            self.history.write(json.dumps({"epoch": ep, "train/ce": tl, "train/top1": ta, "val/ce": vl, "val/top1": va}) + "\n")
            log.info("[%02d] train ce=%.4f top1=%.3f | val ce=%.4f top1=%.3f (best %.3f)", ep, tl, ta, vl, va, best)
        self.history.close()
        torch.save(self.avg.state_dict(), "averaged.pt")


if __name__ == "__main__":
    Runner({"seed": 3, "width": 16, "lr": 2e-3, "ema_decay": 0.98, "batch": 64, "epochs": 12}).run()
