import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def train(steps):
    net.train()
    for _ in range(steps):
        x, y = torch.randn(3, 4), torch.randint(0, 2, (3,))
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()


def evaluate():
    net.eval()
    with torch.no_grad():
        return net(torch.randn(3, 4)).argmax(-1)


for _ in range(2):
    train(6)
    evaluate()
