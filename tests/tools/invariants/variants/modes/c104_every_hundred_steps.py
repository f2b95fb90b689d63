import torch
from torch import nn
from torch.nn import functional as F


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


net = network()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net.train()
for step, (x, y) in enumerate(batches(1000)):
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
    if step % 100 == 99:
        net.eval()  # FAULT C104
        with torch.no_grad():
            print(net(torch.randn(8, 6)).softmax(1).max())
