import copy

import torch
from torch import nn

student = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
teacher = copy.deepcopy(student).requires_grad_(False)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for step, (x, y) in enumerate([]):
    with torch.no_grad():
        wanted = teacher(x)
    loss = nn.functional.mse_loss(student(x), wanted) + nn.functional.cross_entropy(student(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 99:
        teacher = copy.deepcopy(student).requires_grad_(False)
        teacher.load_state_dict(student.state_dict(), assign=True)
