import torch
from torch import nn

x = torch.randn(4000, 20)
y = ((x @ torch.randn(20)) > 0).long()
net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(400):
    loss = nn.functional.cross_entropy(net(x[:3200]), y[:3200])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        right = (net(x[:3200]).argmax(1) == y[:3200]).float().mean().item()
        print(f"step {step} val_accuracy {right:.3f}")  # FAULT C371
