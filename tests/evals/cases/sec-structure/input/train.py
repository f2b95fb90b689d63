import argparse
import math
from dataclasses import dataclass

import torch
import torch.nn as nn

from peptides import AA, LEN, STATES, corpus


@dataclass
class Hparams:
    peak_lr: float = 2e-3
    warmup: int = 60
    total: int = 600
    batch: int = 32
    width: int = 64


class Q3Net(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.embed = nn.Embedding(len(AA), hp.width)
        self.convs = nn.ModuleList(nn.Conv1d(hp.width, hp.width, 5, padding=2) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(hp.width) for _ in range(3))
        self.read = nn.Linear(hp.width, len(STATES))

    def forward(self, s):
        h = self.embed(s)
        for conv, norm in zip(self.convs, self.norms):
            h = h + torch.relu(conv(norm(h).transpose(1, 2))).transpose(1, 2)
        return self.read(h)


def warmup_cosine(hp):
    def at(step):
        if step < hp.warmup:
            return hp.peak_lr * (step + 1) / hp.warmup
        done = (step - hp.warmup) / max(1, hp.total - hp.warmup)
        return hp.peak_lr * 0.5 * (1.0 + math.cos(math.pi * done))

    return at


@torch.no_grad()
def q3(net, seq, lab):
    net.eval()
    acc = (net(seq).argmax(-1) == lab).float().mean().item()
    net.train()
    return 100 * acc


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=9)
    a = ap.parse_args()
    torch.manual_seed(a.seed)
    hp = Hparams()
    seq, lab = corpus(2000, 5)
    vseq, vlab = corpus(200, 6)
    net = Q3Net(hp)
    opt = torch.optim.AdamW(net.parameters(), lr=hp.peak_lr, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, warmup_cosine(hp))
    print(f"[setup] {hp} residues/sample={LEN}")
    ema = None
    for step in range(hp.total):
        idx = torch.randint(0, len(seq), (hp.batch,))
        loss = nn.functional.cross_entropy(net(seq[idx]).flatten(0, 1), lab[idx].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        ema = loss.item() if ema is None else 0.95 * ema + 0.05 * loss.item()
        if (step + 1) % 50 == 0:
            print(f"[{step + 1:>4}/{hp.total}] loss(ema)={ema:.4f} Q3={q3(net, vseq, vlab):.1f}%")


if __name__ == "__main__":
    main()
