import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

class Learner:
    def __init__(self):
        self.net = nn.Sequential(nn.Conv1d(1, 4, 3), nn.Flatten(), nn.Linear(24, 2))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.05)
        self.plan = torch.optim.lr_scheduler.ExponentialLR(self.opt, 0.99)

    def update(self, x, y):
        loss = F.cross_entropy(self.net(x), y)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.plan.step()
        return loss.item()


learner = Learner()
for _ in range(6):
    learner.update(torch.randn(3, 1, 8), torch.randint(0, 2, (3,)))
