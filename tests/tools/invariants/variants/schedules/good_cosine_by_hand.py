"""Cosine by hand."""
import math, torch


def cosine(opt, warmup, total):

    def f(step):
        if step < warmup:
            return step / max(1, warmup)
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))
    return torch.optim.lr_scheduler.LambdaLR(opt, f)


def main(model, loader, crit, epochs=30):
    opt = torch.optim.AdamW(model.parameters(), 0.001)
    sched = cosine(opt, 100, epochs * len(loader))
    for e in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            crit(model(x), y).backward()
            opt.step()
            sched.step()
