import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


class Amp:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters())
        self.scaler = torch.amp.GradScaler("cuda")

    def __call__(self, x, y):
        self.optimizer.zero_grad()
        loss = self.scaler.scale(nn.functional.cross_entropy(self.net(x), y))
        loss.backward()
        self.optimizer.step()  # FAULT C142
        self.scaler.update()


amp = Amp(nn.Linear(6, 3).cuda())
for x, y in batches():
    amp(x.cuda(), y.cuda())
