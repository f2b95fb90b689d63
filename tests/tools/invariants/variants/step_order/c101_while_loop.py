import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3))
sgd = torch.optim.SGD(net.parameters(), lr=0.05)
source = batches()
turn = 0
while turn < 50:
    x, y = next(source)
    nn.CrossEntropyLoss()(net(x), y).backward()
    sgd.step()  # FAULT C101
    turn += 1
