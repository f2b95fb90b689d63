import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

net = nn.GRU(4, 6, batch_first=True)
opt = torch.optim.Adagrad(net.parameters())
for _ in range(6):
    x = torch.randn(2, 5, 4)
    out, _ = net(x)
    loss = F.l1_loss(out, torch.zeros_like(out))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(net.parameters(), 0.5)
    opt.step()
