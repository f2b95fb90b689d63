"""A formula over all batches that is asked once an epoch."""
import torch, math
from torch import nn
def lr_at(step, total, base=1e-3, warm=100):
    if step < warm:
        return base * step / warm
    p = (step - warm) / max(1, total - warm)
    return base * 0.5 * (1.0 + math.cos(math.pi * p))
def main(model, loader, epochs=30):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    total = epochs * len(loader)
    for epoch in range(epochs):
        lr = lr_at(epoch, total)
        for g in opt.param_groups:
            g["lr"] = lr  # FAULT C110
        for x, y in loader:
            loss = (model(x) - y).abs().mean()
            opt.zero_grad(); loss.backward(); opt.step()
