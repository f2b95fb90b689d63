import torch
from torch import nn
import torch.nn.functional as F
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 1)
    def forward(self, x):
        return self.l(x).squeeze(-1)
def good(data):
    net = A()
    opt = torch.optim.Adam(net.parameters())
    pois = nn.PoissonNLLLoss(log_input=False)
    for x, e, y in data:
        loss = pois(torch.exp(net(x)) * e, y) + F.poisson_nll_loss(net(x) + e.log(), y) + F.poisson_nll_loss(F.softplus(net(x)), y, log_input=False)
        opt.zero_grad(); loss.backward(); opt.step()
