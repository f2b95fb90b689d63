import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for i in range(12):
    x, y = torch.randn(3, 4), torch.randint(0, 2, (3,))
    (F.cross_entropy(net(x), y) / 2).backward()
    if (i + 1) % 2 == 0:
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
