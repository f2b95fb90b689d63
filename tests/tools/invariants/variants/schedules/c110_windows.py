"""A length in windows, a step after every batch."""
import torch
from torch import nn
from transformers import get_cosine_schedule_with_warmup
ACC = 4
def main(model, loader, epochs=3):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    total = epochs * len(loader) // ACC
    sched = get_cosine_schedule_with_warmup(opt, 10, total)  # FAULT C110
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            loss = (model(x) - y).abs().mean() / ACC
            loss.backward()
            if (i + 1) % ACC == 0:
                opt.step()
                opt.zero_grad()
            sched.step()
