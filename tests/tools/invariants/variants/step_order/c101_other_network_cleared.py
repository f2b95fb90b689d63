import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


student, teacher = nn.Linear(6, 3), nn.Linear(6, 3)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
for x, _ in batches():
    teacher.zero_grad()
    with torch.no_grad():
        target = teacher(x)
    (student(x) - target).pow(2).mean().backward()
    opt.step()  # FAULT C101
