import time

import torch
import torch.nn.functional as F

from data import frame_features
from model import ClipClassifier

CONFIG = dict(epochs=8, batch=64, peak_lr=3e-3, weight_decay=0.01, save_memory=True)


def accuracy(clf, x, y):
    clf.eval()
    with torch.inference_mode():
        hit = (clf(x).argmax(1) == y).float().mean().item()
    clf.train()
    return hit


def main():
    torch.manual_seed(8)
    x_tr, y_tr = frame_features(2048, seed=1)
    x_va, y_va = frame_features(512, seed=2)
    clf = ClipClassifier(save_memory=CONFIG["save_memory"])
    clf.train()
    total = sum(p.numel() for p in clf.parameters() if p.requires_grad)
    print(f"{total} trainable parameters, {len(x_tr)} clips, memory saving {'on' if clf.save_memory else 'off'}")
    steps = len(x_tr) // CONFIG["batch"] * CONFIG["epochs"]
    adamw = torch.optim.AdamW(clf.parameters(), lr=CONFIG["peak_lr"], weight_decay=CONFIG["weight_decay"])
    sched = torch.optim.lr_scheduler.OneCycleLR(adamw, CONFIG["peak_lr"], total_steps=steps, pct_start=0.2)
    for epoch in range(CONFIG["epochs"]):
        began, running = time.time(), 0.0
        order = torch.randperm(len(x_tr))
        for chunk in order.split(CONFIG["batch"]):
            out = clf(x_tr[chunk])
            nll = F.cross_entropy(out, y_tr[chunk])
            adamw.zero_grad()
            nll.backward()
            adamw.step()
            sched.step()
            running += nll.item() * len(chunk)
        print(f"ep {epoch} nll {running / len(x_tr):.4f} train_acc {accuracy(clf, x_tr, y_tr):.3f} "
              f"val_acc {accuracy(clf, x_va, y_va):.3f} lr {sched.get_last_lr()[0]:.2e} ({time.time() - began:.1f}s)")


if __name__ == "__main__":
    main()
