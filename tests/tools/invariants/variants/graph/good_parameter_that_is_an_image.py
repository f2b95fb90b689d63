import torch
from torch import nn

features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval().requires_grad_(False)
content = torch.rand(1, 3, 32, 32)
with torch.no_grad():
    wanted = features(content)
image = nn.Parameter(content.clone())
opt = torch.optim.Adam([image], 0.02)
for _ in range(100):
    opt.zero_grad()
    loss = nn.functional.mse_loss(features(image), wanted)
    loss.backward()
    opt.step()
