import argparse
import logging

import torch
from torch import nn
from torch.utils.data import DataLoader

from chem import AnchorAtoms, pack_graphs
from gnn import AnchorClassifier

logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(message)s", datefmt="%H:%M:%S")
log = logging.getLogger()


def run_epoch(net, loader, opt=None):
    net.train(opt is not None)
    tot, hit, n = 0.0, 0, 0
    with torch.set_grad_enabled(opt is not None):
        for b in loader:
            logit = net(b)
            loss = nn.functional.binary_cross_entropy_with_logits(logit, b["y"].float())
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                opt.step()
            tot += loss.item() * len(b["y"])
            hit += ((logit > 0).long() == b["y"]).sum().item()
            n += len(b["y"])
    return tot / n, hit / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=48)
    ap.add_argument("--epochs", type=int, default=15)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--depth", type=int, default=3)
    args = ap.parse_args()
    torch.manual_seed(8)
    log.info("args %s", vars(args))
    train, valid = AnchorAtoms(1600, 1), AnchorAtoms(400, 2)
    share = sum(y for *_, y in train.items) / len(train)
    log.info("train %d valid %d positives %.3f atoms/molecule %.1f", len(train), len(valid), share,
             sum(len(t) for t, *_ in train.items) / len(train))
    tl = DataLoader(train, args.batch_size, shuffle=True, collate_fn=pack_graphs)
    vl = DataLoader(valid, args.batch_size, collate_fn=pack_graphs)
    net = AnchorClassifier(depth=args.depth)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        tr_loss, tr_acc = run_epoch(net, tl, opt)
        va_loss, va_acc = run_epoch(net, vl)
        log.info("ep %2d  train %.4f / %.3f   valid %.4f / %.3f", epoch, tr_loss, tr_acc, va_loss, va_acc)


if __name__ == "__main__":
    main()
