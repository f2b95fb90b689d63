import os
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from accelerate import Accelerator
def main(net, ds, vs):
    acc = Accelerator()
    opt = torch.optim.Adam(net.parameters())
    tl, vl = DataLoader(ds, 16, shuffle=True), DataLoader(vs, 16)
    net, opt, tl, vl = acc.prepare(net, opt, tl, vl)
    for e in range(10):
        net.train()
        for x, y in tl:
            opt.zero_grad()
            acc.backward(nn.functional.cross_entropy(net(x), y))
            opt.step()
        net.eval()
        right = seen = 0
        with torch.no_grad():
            for x, y in vl:
                right += (net(x).argmax(1) == y).sum().item()
                seen += y.numel()
        acc.print(e, right / seen)
