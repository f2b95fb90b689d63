import csv
import logging

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

from data import STAGES, nights
from model import NightTagger

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
log = logging.getLogger("sleep")


@torch.no_grad()
def validate(model, loader, criterion):
    model.eval()
    loss = hit = n = 0
    for x, y in loader:
        logp = model(x)
        loss += criterion(logp.flatten(0, 1), y.flatten()).item() * y.numel()
        hit += (logp.argmax(-1) == y).sum().item()
        n += y.numel()
    return loss / n, hit / n


def main():
    torch.manual_seed(3)
    train = DataLoader(TensorDataset(*nights(160, seed=1)), batch_size=16, shuffle=True)
    val = DataLoader(TensorDataset(*nights(40, seed=2)), batch_size=16)
    model = NightTagger(len(STAGES))
    criterion = nn.NLLLoss()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    rows = []
    for epoch in range(14):
        model.train()
        total = 0.0
        for x, y in train:
            logp = model(x)
            loss = criterion(logp.flatten(0, 1), y.flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item()
        vl, acc = validate(model, val, criterion)
        rows.append((epoch, total / len(train), vl, acc))
        log.info("epoch %d train_nll %.4f val_nll %.4f val_acc %.3f", *rows[-1])
    with open("metrics.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["epoch", "train_nll", "val_nll", "val_acc"])
        w.writerows(rows)


if __name__ == "__main__":
    main()
