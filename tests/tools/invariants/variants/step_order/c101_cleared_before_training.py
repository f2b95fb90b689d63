import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def train(model, epochs=4):
    opt = torch.optim.RMSprop(model.parameters())
    opt.zero_grad(set_to_none=True)
    for _ in range(epochs):
        for x, y in batches():
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()  # FAULT C101


train(nn.Linear(6, 3))
