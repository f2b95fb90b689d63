"""A state that is loaded before anything is there to get it."""
import torch
from accelerate import Accelerator


def run(net, batches, folder):
    acc = Accelerator()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    acc.load_state(folder)  # FAULT C205
    net, opt, batches = acc.prepare(net, opt, batches)
    for x, y in batches:
        cost = (net(x) - y).pow(2).mean()
        opt.zero_grad()
        acc.backward(cost)
        opt.step()
    acc.save_state(folder)
