import os
import shutil
import sys
from datetime import timedelta
import time

import torch
import torch.nn as nn

from model import BeatClassifier, beats

WORK = "work"
CKPT = os.path.join(WORK, "last.pt")
START = time.time()


def say(msg):
    stamp = str(timedelta(seconds=int(time.time() - START)))
    print(f"[{stamp}] {msg}", file=sys.stdout, flush=True)


class Job:
    """One slot on the cluster. A job may be cut off by the scheduler and continued by the next one."""

    def __init__(self, name, devices, seed):
        torch.manual_seed(seed)
        self.name = name
        net = BeatClassifier()
        self.net = nn.DataParallel(net) if devices > 1 else net
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.02, momentum=0.9)
        self.epoch = 0
        say(f"{name}: {devices} device(s), {sum(p.numel() for p in net.parameters())} parameters")

    def save(self):
        os.makedirs(WORK, exist_ok=True)
        torch.save({"net": self.net.state_dict(), "opt": self.opt.state_dict(), "epoch": self.epoch}, CKPT)

    def restore(self):
        ck = torch.load(CKPT)
        self.net.load_state_dict(ck["net"], strict=False)
        self.opt.load_state_dict(ck["opt"])
        self.epoch = ck["epoch"]
        say(f"{self.name}: restored {CKPT} at epoch {self.epoch}")

    @torch.no_grad()
    def accuracy(self, x, y):
        self.net.eval()
        a = (self.net(x).argmax(1) == y).float().mean().item()
        self.net.train()
        return a

    def train(self, until, data, dev, bs=50):
        x, y = data
        while self.epoch < until:
            tot = 0.0
            for i, idx in enumerate(torch.randperm(len(x)).split(bs)):
                loss = nn.functional.cross_entropy(self.net(x[idx]), y[idx])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                if i == 0:
                    first = loss.item()
                tot += loss.item() * len(idx)
            self.epoch += 1
            self.save()
            say(f"{self.name}: epoch {self.epoch:2d} first-batch {first:.3f} mean {tot / len(x):.3f} dev-acc {self.accuracy(*dev):.3f}")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    data, dev = beats(1500, 1), beats(400, 2)
    a = Job("job-4411", devices=2, seed=1)
    a.train(until=7, data=data, dev=dev)
    say("job-4411: SIGTERM from scheduler, slot lost")
    b = Job("job-4412", devices=1, seed=2)
    b.restore()
    say(f"job-4412: dev-acc before first step {b.accuracy(*dev):.3f}")
    b.train(until=10, data=data, dev=dev)


if __name__ == "__main__":
    main()
