import logging
import random
import sys

import torch
import torch.nn.functional as F
import yaml

from leafdata import build_loaders
from leafnet import LeafNet

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
log = logging.getLogger("leaf")


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    hits = total = 0
    loss = 0.0
    for img, label in loader:
        out = net(img)
        loss += F.cross_entropy(out, label, reduction="sum").item()
        hits += (out.argmax(1) == label).sum().item()
        total += len(label)
    return loss / total, hits / total


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    random.seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])
    train_dl, val_dl = build_loaders(cfg["data"], cfg["seed"], cfg["train"]["batch_size"])
    net = LeafNet(cfg["data"]["classes"])
    opt = torch.optim.AdamW(net.parameters(), lr=cfg["train"]["lr"], weight_decay=cfg["train"]["weight_decay"])
    log.info("train %d images, val %d images", len(train_dl.dataset), len(val_dl.dataset))
    for epoch in range(1, cfg["train"]["epochs"] + 1):
        net.train()
        running = seen = 0
        for img, label in train_dl:
            loss = F.cross_entropy(net(img), label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            running += loss.item() * len(label)
            seen += len(label)
        vloss, vacc = evaluate(net, val_dl)
        log.info("epoch=%d train_loss=%.4f val_loss=%.4f val_acc=%.3f", epoch, running / seen, vloss, vacc)
    for k in range(4):
        vloss, vacc = evaluate(net, val_dl)
        log.info("final check %d: val_loss=%.4f val_acc=%.3f", k + 1, vloss, vacc)


if __name__ == "__main__":
    main()
