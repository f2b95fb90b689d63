import copy

import torch
from torch import nn

RATE = 0.002
student = nn.Linear(4, 4)
teacher = copy.deepcopy(student)


def follow():
    with torch.no_grad():
        for t, s in zip(teacher.parameters(), student.parameters()):
            t.data = RATE * t.data + (1 - RATE) * s.data  # FAULT C170


opt = torch.optim.SGD(student.parameters(), 0.1)
for _ in range(1000):
    x = torch.randn(8, 4)
    with torch.no_grad():
        wanted = teacher(x + 0.1)
    opt.zero_grad()
    (student(x) - wanted).square().mean().backward()
    opt.step()
    follow()
