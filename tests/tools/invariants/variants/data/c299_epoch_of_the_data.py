"""The data set is told how hard its samples are to be, and its workers started long before."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Puzzles(Dataset):
    def __init__(self, count):
        self.count, self.hard = count, 0.1

    def __len__(self):
        return self.count

    def harder(self, by):
        self.hard = by

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return self.hard * torch.randn(12, generator=g)


class Run:
    def __init__(self):
        self.data = Puzzles(4000)
        self.feed = DataLoader(self.data, 40, True, num_workers=3, persistent_workers=True)  # FAULT C299
        self.net = nn.Linear(12, 12)
        self.opt = torch.optim.Adam(self.net.parameters())

    def go(self):
        for epoch in range(12):
            self.data.harder(0.1 * epoch)
            for x in self.feed:
                self.opt.zero_grad()
                (self.net(x) - x).abs().mean().backward()
                self.opt.step()


Run().go()
