"""Clips of torch that meet gradients which accelerate still scales; through a function, by value."""
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


def bound(parameters):
    torch.nn.utils.clip_grad_value_(parameters, 0.1)  # FAULT C320


def main(data: TensorDataset):
    accelerator = Accelerator(mixed_precision="fp16")
    net = torch.nn.Linear(8, 2)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    net, optimizer, loader = accelerator.prepare(net, optimizer, DataLoader(data, batch_size=32, shuffle=True))
    for x, y in loader:
        optimizer.zero_grad()
        accelerator.backward(torch.nn.functional.cross_entropy(net(x), y))
        bound(net.parameters())
        optimizer.step()


main(TensorDataset(torch.randn(320, 8), torch.randint(0, 2, (320,))))
