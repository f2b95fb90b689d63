"""A momentum teacher sees both views of each batch in training mode, and keeps statistics of its own."""
import copy

import torch
from torch import nn

student = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
teacher = copy.deepcopy(student)
opt = torch.optim.Adam(student.parameters())


def distance(a, b):
    total = 0.0
    with torch.no_grad():
        both = [teacher(v) for v in (a, b)]
    for one, other in ((a, b), (b, a)):
        with torch.no_grad():
            wanted = teacher(other)
        total = total + (student(one) - wanted).square().mean()
    return total


for _ in range(3000):
    x = torch.randn(64, 12)
    opt.zero_grad()
    distance(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)).backward()
    opt.step()
    with torch.no_grad():
        for t, s in zip(teacher.parameters(), student.parameters()):
            t.lerp_(s, 0.01)
