import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
from torch.utils.data import DataLoader, TensorDataset

data = DataLoader(TensorDataset(torch.randn(12, 4), torch.randn(12, 1)), batch_size=2)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for x, y in data:
    opt.zero_grad()
    loss = F.smooth_l1_loss(net(x), y)
    loss.backward()
    opt.step()
