import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split, Dataset, ConcatDataset, Subset


def run(train, held, dim=6, epochs=5):
    net = nn.Linear(dim, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(epochs):
        for x, y in train:
            opt.zero_grad()
            loss = nn.functional.mse_loss(net(x).squeeze(1), y)
            loss.backward()
            opt.step()
        with torch.no_grad():
            err = sum(nn.functional.mse_loss(net(x).squeeze(1), y).item() for x, y in held) / len(held)
        print(f"epoch {epoch} val {err:.3f}")


from accelerate import Accelerator


def rows(n):
    x = torch.randn(n, 6)
    return x, x.sum(1)


acc = Accelerator()
x, y = rows(2000)
x, y, vx, vy = x[:1600], y[:1600], x[1600:], y[1600:]
x, y = torch.cat([x, -x]), torch.cat([y, -y])
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
train, val = DataLoader(TensorDataset(x, y), 32, shuffle=True), DataLoader(TensorDataset(vx, vy), 100)
net, opt, train, val = acc.prepare(net, opt, train, val)
for epoch in range(5):
    for a, b in train:
        opt.zero_grad()
        acc.backward(nn.functional.mse_loss(net(a).squeeze(1), b))
        opt.step()
    with torch.no_grad():
        errs = [nn.functional.mse_loss(net(a).squeeze(1), b) for a, b in val]
    acc.print("val", torch.stack(errs).mean().item())
