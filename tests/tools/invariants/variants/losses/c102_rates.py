import torch
from torch import nn
import torch.nn.functional as F
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 1)
    def forward(self, x):
        return self.l(x).squeeze(-1)
def fit(data):
    net = A()
    opt = torch.optim.Adam(net.parameters())
    for x, e, y in data:
        rate = torch.exp(net(x)) * e  # FAULT C102
        loss = F.poisson_nll_loss(rate, y)
        opt.zero_grad(); loss.backward(); opt.step()
