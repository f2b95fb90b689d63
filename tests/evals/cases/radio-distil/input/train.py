"""Radio modulation: a small student learns from a large teacher.  Cosine with warm restarts, night job in two parts."""
import logging
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s: %(message)s")
log = logging.getLogger("distil")
CLASSES, LAST = 6, "student.pt"


def signals(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    proto = torch.randn(CLASSES, 40, generator=torch.Generator().manual_seed(0))
    x = proto[y] * (0.5 + torch.rand(n, 1, generator=g)) + 2.2 * torch.randn(n, 40, generator=g)
    return TensorDataset(x, y)


def mlp(width):
    return nn.Sequential(nn.Linear(40, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))


@torch.no_grad()
def accuracy(model, loader):
    was = model.training
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train(was)
    return hits / len(loader.dataset)


def train_teacher(loader, val):
    teacher = mlp(256)
    opt = torch.optim.AdamW(teacher.parameters(), lr=1e-3, weight_decay=0.05)
    for _ in range(6):
        for x, y in loader:
            loss = F.cross_entropy(teacher(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    log.info("teacher val_acc %.3f", accuracy(teacher, val))
    return teacher.eval().requires_grad_(False)


def train_student(teacher, loader, val, until, temperature=3.0, hard=0.3):
    student = mlp(32)
    opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=4, T_mult=2, eta_min=1e-4)
    start = 0
    if os.path.exists(LAST):
        state = torch.load(LAST)
        student.load_state_dict(state["student"])
        opt.load_state_dict(state["opt"])
        sched.load_state_dict(state["sched"])
        torch.set_rng_state(state["rng"])
        start = state["epoch"] + 1
        log.info("continue at epoch %d", start)
    for epoch in range(start, until):
        student.train()
        total = 0.0
        for i, (x, y) in enumerate(loader):
            z = student(x)
            with torch.no_grad():
                zt = teacher(x)
            soft = F.kl_div(F.log_softmax(z / temperature, 1), F.softmax(zt / temperature, 1), reduction="batchmean") * temperature ** 2
            loss = (1 - hard) * soft + hard * F.cross_entropy(z, y, label_smoothing=0.1)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step(epoch + (i + 1) / len(loader))
            total += loss.item()
        log.info("epoch %d loss %.4f val_acc %.3f lr %.5f", epoch, total / len(loader), accuracy(student, val), sched.get_last_lr()[0])
        torch.save({"student": student.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(),
                    "rng": torch.get_rng_state(), "epoch": epoch}, LAST)


if __name__ == "__main__":
    torch.manual_seed(4)
    train = DataLoader(signals(4000, 1), batch_size=64, shuffle=True)
    val = DataLoader(signals(1000, 2), batch_size=250)
    teacher = train_teacher(train, val)
    train_student(teacher, train, val, until=15)
    train_student(teacher, train, val, until=28)
