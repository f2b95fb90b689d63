import csv
import sys
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Cfg:
    n_speakers: int = 12
    per_speaker: int = 120
    mel: int = 20
    frames: int = 24
    dim: int = 32
    margin: float = 0.5
    enc_lr: float = 1e-2
    head_lr: float = 2e-2
    batch: int = 48
    steps: int = 900
    report: int = 60


cfg = Cfg()
torch.manual_seed(11)


def synth_speakers():
    timbre = torch.randn(cfg.n_speakers, cfg.mel, 1)
    spk = torch.arange(cfg.n_speakers).repeat_interleave(cfg.per_speaker)
    env = torch.rand(len(spk), 1, cfg.frames) + 0.3
    return timbre[spk] * env + 0.8 * torch.randn(len(spk), cfg.mel, cfg.frames), spk


class TDNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv1d(cfg.mel, 48, 5, padding=2)
        self.c2 = nn.Conv1d(48, 48, 3, padding=2, dilation=2)
        self.fc = nn.Linear(96, cfg.dim)

    def forward(self, x):
        h = F.relu(self.c2(F.relu(self.c1(x))))
        return self.fc(torch.cat([h.mean(-1), h.std(-1)], 1))


class MarginSoftmax(nn.Module):
    """softmax with a fixed margin on the target logit"""

    def __init__(self):
        super().__init__()
        self.W = nn.Parameter(torch.randn(cfg.n_speakers, cfg.dim) * 0.1)

    def forward(self, e, y):
        logits = F.linear(e, self.W)
        return F.cross_entropy(logits - cfg.margin * F.one_hot(y, cfg.n_speakers), y), logits


x, y = synth_speakers()
perm = torch.randperm(len(y))
tr, te = perm[:1200], perm[1200:]
enc, head = TDNN(), MarginSoftmax()
opts = {"enc": torch.optim.SGD(enc.parameters(), lr=cfg.enc_lr, momentum=0.9),
        "head": torch.optim.SGD(head.parameters(), lr=cfg.head_lr, momentum=0.9)}

out = csv.writer(sys.stdout)
out.writerow(["step", "loss", "train_acc", "test_acc", "emb_norm"])
acc = run = 0.0
for step in range(1, cfg.steps + 1):
    idx = tr[torch.randint(len(tr), (cfg.batch,))]
    head.zero_grad()
    emb = enc(x[idx])
    loss, logits = head(emb, y[idx])
    loss.backward()
    for o in opts.values():
        o.step()
    run += loss.item()
    acc += (logits.argmax(1) == y[idx]).float().mean().item()
    if step % cfg.report == 0:
        with torch.no_grad():
            _, c = head(enc(x[te]), y[te])
            test = (c.argmax(1) == y[te]).float().mean().item()
        out.writerow([step, f"{run / cfg.report:.4f}", f"{acc / cfg.report:.3f}", f"{test:.3f}",
                      f"{emb.norm(dim=1).mean().item():.2f}"])
        acc = run = 0.0
