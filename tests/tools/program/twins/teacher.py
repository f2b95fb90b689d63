import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

student, teacher = nn.Linear(4, 3), nn.Linear(4, 3)
opt = torch.optim.RMSprop(student.parameters(), lr=0.01)
for _ in range(6):
    x = torch.randn(5, 4)
    with torch.no_grad():
        goal = teacher(x)
    loss = F.mse_loss(student(x), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
