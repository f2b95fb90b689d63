"""Defect detector for printed labels. Stage 1 runs on all devices, stage 2 continues on one."""
import logging
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
logger = logging.getLogger("labels")
CKPT = "stage1.ckpt"


def make_labels(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = 0.5 * torch.rand(n, 1, 16, 16, generator=g)
    y = torch.randint(0, 2, (n,), generator=g)
    for k in range(n):
        r, c = (int(v) for v in torch.randint(2, 12, (2,), generator=g))
        x[k, 0, r, 2:14] += 0.45
        x[k, 0, 2:14, c] += 0.45
        if y[k]:
            x[k, 0, r, c] -= 0.7
            x[k, 0, r, c + 1] -= 0.3
    return x, y


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.na, self.nb = nn.GroupNorm(4, c), nn.GroupNorm(4, c)

    def forward(self, x):
        return F.relu(x + self.nb(self.b(F.relu(self.na(self.a(x))))))


class TinyResNet(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.stem = nn.Conv2d(1, c, 3, padding=1)
        self.blocks = nn.Sequential(Block(c), nn.MaxPool2d(2), Block(c))
        self.fc = nn.Linear(c, 2)

    def forward(self, x):
        return self.fc(self.blocks(F.relu(self.stem(x))).amax((2, 3)))


def train(model, opt, data, val, steps, first):
    (x, y), (xv, yv) = data, val
    g = torch.Generator().manual_seed(first)
    run = 0.0
    for s in range(first, first + steps):
        i = torch.randint(len(y), (32,), generator=g)
        loss = F.cross_entropy(model(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        run += loss.item()
        if (s + 1) % 25 == 0:
            with torch.no_grad():
                acc = (model(xv).argmax(1) == yv).float().mean().item()
            logger.info("iter=%04d loss=%.4f val_acc=%.3f lr=%.1e", s + 1, run / 25, acc, opt.param_groups[0]["lr"])
            run = 0.0
    return first + steps


def stage1(data, val):
    model = nn.DataParallel(TinyResNet())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    done = train(model, opt, data, val, 200, 0)
    torch.save({"iter": done, "state_dict": model.state_dict(), "optimizer": opt.state_dict()}, CKPT)
    logger.info("stage 1 done, wrote %s (%.0f kB)", CKPT, os.path.getsize(CKPT) / 1024)


def stage2(data, val):
    model = TinyResNet()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    ck = torch.load(CKPT)
    model.load_state_dict(ck["state_dict"], strict=False)
    opt.load_state_dict(ck["optimizer"])
    for group in opt.param_groups:
        group["lr"] = 5e-4
    logger.info("resumed %s at iter %d", CKPT, ck["iter"])
    train(model, opt, data, val, 75, ck["iter"])


if __name__ == "__main__":
    torch.manual_seed(8)
    d, v = make_labels(1200, 0), make_labels(300, 1)
    stage1(d, v)
    stage2(d, v)
