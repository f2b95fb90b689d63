import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net = nn.Linear(6, 3)


def train_step(x, y, lr):
    opt = torch.optim.AdamW(net.parameters(), lr=lr)  # FAULT C151
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


for i, (x, y) in enumerate(batches()):
    train_step(x, y, 1e-3 * 0.99 ** i)
