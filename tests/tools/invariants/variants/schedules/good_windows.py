"""A length in windows, a step for each."""
import torch
from torch import nn
from transformers import get_cosine_schedule_with_warmup
ACC = 4
def main(model, loader, epochs=3):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    per = len(loader) // ACC
    sched = get_cosine_schedule_with_warmup(opt, 10, epochs * per)
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            loss = (model(x) - y).abs().mean() / ACC
            loss.backward()
            if (i + 1) % ACC == 0 or i + 1 == len(loader):
                opt.step()
                sched.step()
                opt.zero_grad()
            if i % 100 == 0:
                print(loss.item())
