"""A warm-up and a cosine by hand over all batches, stepped once an epoch."""
import math
import torch
def cosine(opt, warmup, total):
    def f(step):
        if step < warmup:
            return step / max(1, warmup)
        progress = (step - warmup) / max(1, total - warmup)
        return 0.5 * (1 + math.cos(math.pi * progress))
    return torch.optim.lr_scheduler.LambdaLR(opt, f)
def main(model, loader, crit, epochs=30):
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    sched = cosine(opt, 100, epochs * len(loader))
    for e in range(epochs):
        for x, y in loader:
            opt.zero_grad(); crit(model(x), y).backward(); opt.step()
        sched.step()  # FAULT C110
