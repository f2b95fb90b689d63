import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x).relu())


def fit(batches):
    net = Net()
    net.body.requires_grad_(False)
    opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=1e-3)
    for epoch in range(6):
        if epoch == 2:
            net.body.requires_grad_(True)
            opt.add_param_group({"params": net.body.parameters(), "lr": 1e-4})
        for x, y in batches:
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()


fit([])
