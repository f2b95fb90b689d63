import torch
from torch import nn
from torch.nn import functional as F


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


net, best, bad = network(), 1e9, 0
opt = torch.optim.SGD(net.parameters(), lr=0.1)
while bad < 3:
    for x, y in batches():
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    net.eval()  # FAULT C104
    with torch.no_grad():
        held = sum(F.cross_entropy(net(x), y).item() for x, y in batches(4))
    bad = 0 if held < best else bad + 1
    best = min(best, held)
