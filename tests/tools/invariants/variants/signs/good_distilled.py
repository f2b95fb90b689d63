"""The divergence of a student from a fixed teacher, weighted by the teacher's probabilities, written with a minus."""
import torch
import torch.nn.functional as F
from torch import nn


def apart(of_teacher, of_student):
    terms = -F.softmax(of_teacher, dim=-1) * (F.log_softmax(of_student, dim=-1) - F.log_softmax(of_teacher, dim=-1))
    return torch.sum(terms)


def train(loader):
    teacher, student = nn.Linear(16, 4), nn.Linear(16, 4)
    teacher.eval()
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
    for x, y in loader:
        with torch.no_grad():
            wanted = teacher(x) / 2.0
        given = student(x)
        loss = F.cross_entropy(given, y) + 0.5 * torch.mean(apart(wanted, given / 2.0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
