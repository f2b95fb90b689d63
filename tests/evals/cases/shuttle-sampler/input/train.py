import json

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

CONF = json.loads("""{
  "classes": ["nominal", "valve", "bypass", "leak", "sensor"],
  "share":   [0.78, 0.10, 0.06, 0.04, 0.02],
  "n_train": 6000, "n_val": 2000, "dim": 18,
  "hidden": 96, "dropout": 0.1, "lr": 0.001, "batch_size": 100, "epochs": 8, "seed": 17
}""")


class Telemetry(Dataset):
    def __init__(self, n, seed):
        r = np.random.default_rng(seed)
        centers = np.random.default_rng(5).normal(0, 1.1, (len(CONF["classes"]), CONF["dim"]))
        self.y = r.choice(len(CONF["classes"]), n, p=CONF["share"])
        self.x = (centers[self.y] + r.normal(0, 1.0, (n, CONF["dim"]))).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], int(self.y[i])


def balanced_sampler(ds):
    counts = np.bincount(ds.y, minlength=len(CONF["classes"]))
    weights = 1.0 / np.maximum(counts, 1)
    return WeightedRandomSampler(torch.as_tensor(weights), num_samples=len(ds), replacement=True)


def net():
    d, h = CONF["dim"], CONF["hidden"]
    return nn.Sequential(nn.Linear(d, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Dropout(CONF["dropout"]),
                         nn.Linear(h, h), nn.ReLU(), nn.Linear(h, len(CONF["classes"])))


def run_epoch(model, loader, opt=None):
    model.train(opt is not None)
    tot = hit = n = 0
    per = torch.zeros(len(CONF["classes"]), 2)
    for x, y in loader:
        with torch.set_grad_enabled(opt is not None):
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()
        ok = logits.argmax(1) == y
        for c in range(len(per)):
            per[c, 0] += (ok & (y == c)).sum()
            per[c, 1] += (y == c).sum()
        tot, hit, n = tot + loss.item() * len(y), hit + ok.sum().item(), n + len(y)
    rec = (per[:, 0] / per[:, 1].clamp(min=1)).tolist()
    return tot / n, hit / n, rec


def main():
    torch.manual_seed(CONF["seed"])
    tr, va = Telemetry(CONF["n_train"], 1), Telemetry(CONF["n_val"], 2)
    train_dl = DataLoader(tr, batch_size=CONF["batch_size"], sampler=balanced_sampler(tr))
    val_dl = DataLoader(va, batch_size=500)
    model = net()
    opt = torch.optim.AdamW(model.parameters(), lr=CONF["lr"], weight_decay=0.01)
    print("train samples %d  val samples %d  steps/epoch %d" % (len(tr), len(va), len(train_dl)))
    for e in range(1, CONF["epochs"] + 1):
        tl, ta, _ = run_epoch(model, train_dl, opt)
        vl, va_acc, rec = run_epoch(model, val_dl)
        print(f"Epoch {e}/{CONF['epochs']}")
        print(f"{len(train_dl)}/{len(train_dl)} [==============================] - loss: {tl:.4f} - accuracy: {ta:.4f} "
              f"- val_loss: {vl:.4f} - val_accuracy: {va_acc:.4f}")
    print("val recall " + "  ".join(f"{c}={v:.2f}" for c, v in zip(CONF["classes"], rec)))


if __name__ == "__main__":
    main()
