import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))


net = Net()
opt = torch.optim.Adam(net.parameters())
plan = torch.optim.lr_scheduler.StepLR(opt, 2)
criterion = nn.MSELoss()
for _ in range(6):
    x = torch.randn(3, 4)
    loss = criterion(net(x), x.sum(1, keepdim=True))
    opt.zero_grad()
    loss.backward()
    opt.step()
    plan.step()
