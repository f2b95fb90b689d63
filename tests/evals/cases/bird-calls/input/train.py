import math
import sys
import torch
import torch.nn.functional as F
from torch.optim import AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR

from models import CallNet, trainable

SR = 128


def envelopes(n, species, seed):
    """amplitude envelopes of calls: every species has its own trill rate and attack"""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, len(species), (n,), generator=g)
    t = torch.linspace(0, 1, SR)
    rate = torch.tensor([s[0] for s in species])[y][:, None]
    attack = torch.tensor([s[1] for s in species])[y][:, None]
    phase = torch.rand(n, 1, generator=g) * 2 * math.pi
    x = torch.exp(-attack * t) * (1 + torch.sin(2 * math.pi * rate * t + phase))
    return (x + 0.15 * torch.randn(n, SR, generator=g)).unsqueeze(1), y


SOURCE = [(4.0 + 2.3 * k, 0.5 + (k % 4)) for k in range(10)]
TARGET = [(5.0, 3.5), (7.5, 0.5), (9.0, 2.0), (12.0, 1.0), (14.5, 3.0), (17.0, 0.8), (20.0, 2.5)]


def bar(i, n, width=22):
    k = int(width * i / n)
    return "[" + "=" * k + ">" + "." * (width - k) + "]"


def run_epoch(model, x, y, opt=None, bs=64):
    model.train(opt is not None)
    order = torch.randperm(len(x)) if opt else torch.arange(len(x))
    tot = hits = 0
    for k in range(0, len(x), bs):
        idx = order[k:k + bs]
        with torch.set_grad_enabled(opt is not None):
            logits = model(x[idx])
            loss = F.cross_entropy(logits, y[idx])
        if opt:
            opt.zero_grad()
            loss.backward()
            opt.step()
        tot += loss.item() * len(idx)
        hits += (logits.argmax(1) == y[idx]).sum().item()
    return tot / len(x), hits / len(x)


def fit(model, opt, data, val, epochs, tag):
    sched = CosineAnnealingLR(opt, epochs)
    for e in range(1, epochs + 1):
        tl, ta = run_epoch(model, *data, opt)
        vl, va = run_epoch(model, *val)
        sched.step()
        print(f"{tag} {e:2d}/{epochs} {bar(e, epochs)} loss: {tl:.4f} - acc: {ta:.3f} - val_loss: {vl:.4f} - val_acc: {va:.3f}")
        sys.stdout.flush()


def main():
    torch.manual_seed(5)
    model = CallNet(len(SOURCE))
    print("== stage 1: source recordings (10 species)")
    fit(model, AdamW(model.parameters(), lr=2e-3), envelopes(2000, SOURCE, 0), envelopes(500, SOURCE, 1), 6, "pre")

    print("== stage 2: local species (7), trunk frozen")
    model.freeze_trunk()
    opt = AdamW(trainable(model), lr=5e-3, weight_decay=1e-3)
    model.reset_classifier(len(TARGET))
    print(f"trainable tensors: {len(trainable(model))}, weights: {sum(p.numel() for p in trainable(model))}")
    fit(model, opt, envelopes(700, TARGET, 2), envelopes(300, TARGET, 3), 12, "fine")


if __name__ == "__main__":
    main()
