"""Domain-name language model. Writes checkpoints, can be continued:  python train.py --continue ckpt.pt"""
import argparse
import os
import subprocess
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

ALPHA = "abcdefghijklmnopqrstuvwxyz.-$"


def build_lr(opt, warm, total, last=-1):
    def f(s):
        return s / warm if s < warm else max(0.02, 1 - (s - warm) / (total - warm))
    return torch.optim.lr_scheduler.LambdaLR(opt, f, last_epoch=last)


class CharRNN(nn.Module):
    def __init__(self, hid=64):
        super().__init__()
        self.emb = nn.Embedding(len(ALPHA), 24)
        self.rnn = nn.LSTM(24, hid, batch_first=True)
        self.out = nn.Linear(hid, len(ALPHA))

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def names(n, g):
    """Consonant-vowel syllables, a dot, a short suffix, end mark."""
    con, vow = torch.tensor([ALPHA.index(c) for c in "bcdfgklmnprst"]), torch.tensor([0, 4, 8, 14, 20])
    syl = torch.stack([con[torch.randint(0, 13, (n, 4), generator=g)], vow[torch.randint(0, 5, (n, 4), generator=g)]], -1)
    suffix = torch.tensor([[ALPHA.index(c) for c in t] for t in ("com", "org", "net")])[torch.randint(0, 3, (n,), generator=g)]
    dot, end = torch.full((n, 1), 26), torch.full((n, 1), 28)
    return torch.cat([syl.flatten(1), dot, suffix, end], 1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--continue", dest="cont")
    ap.add_argument("--bis", type=int, default=320, help="stop after this step (job limit)")
    ap.add_argument("--schritte", type=int, default=600)
    ap.add_argument("--rate", type=float, default=6e-3)
    a = ap.parse_args()
    torch.manual_seed(0)
    net = CharRNN()
    opt = torch.optim.AdamW(net.parameters(), lr=a.rate)
    sched = build_lr(opt, 60, a.schritte)
    first = 0
    if a.cont:
        state = torch.load(a.cont)
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
        first = state["step"]
        sched = build_lr(opt, 60, a.schritte)
        print(f"== fortgesetzt bei Schritt {first} ==", flush=True)
    g = torch.Generator().manual_seed(first)
    for s in range(first + 1, min(a.bis, a.schritte) + 1):
        ids = names(32, g)
        nll = F.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        nll.backward()
        rate = opt.param_groups[0]["lr"]
        opt.step()
        sched.step()
        if s % 20 == 0:
            print(f"Schritt {s:>4} von {a.schritte} | Verlust {nll.item():.4f} | Rate {rate:.6f}", flush=True)
    torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(), "step": s}, "ckpt.pt")


if __name__ == "__main__":
    main()
    if len(sys.argv) == 1:   # second job of the chain
        sys.exit(subprocess.call([sys.executable, os.path.abspath(__file__), "--continue", "ckpt.pt", "--bis", "600"]))
