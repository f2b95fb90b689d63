import torch
from torch import nn


class Smoothed(nn.Module):
    def __init__(self, size, smoothing=0.1):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="batchmean")
        self.size, self.smoothing = size, smoothing

    def forward(self, logs, target):
        wanted = logs.data.clone()
        wanted.fill_(self.smoothing / (self.size - 1))
        wanted.scatter_(1, target.unsqueeze(1), 1 - self.smoothing)
        again = logs.detach().clone()
        again[:] = self.smoothing / (self.size - 1)
        again.scatter_(1, target.unsqueeze(1), 1 - self.smoothing)
        return self.criterion(logs, wanted) + self.criterion(logs, again)


net, criterion = nn.Linear(8, 5), Smoothed(5)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(100):
    x, y = torch.randn(32, 8), torch.randint(0, 5, (32,))
    loss = criterion(nn.functional.log_softmax(net(x), -1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
