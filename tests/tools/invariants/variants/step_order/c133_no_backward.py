import torch
from torch import nn


class Runner:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(self, x, y):
        self.optimizer.zero_grad()
        error = ((self.net(x) - y) ** 2).mean()
        self.optimizer.step()  # FAULT C133
        return float(error)


def main(batches):
    runner = Runner(nn.Linear(5, 1))
    for x, y in batches:
        runner.step(x, y)


main([])
