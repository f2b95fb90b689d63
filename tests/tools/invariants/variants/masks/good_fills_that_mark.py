"""NaN as a mark, and a large number among scores that float32 holds."""
import torch
from torch import nn


def marked(points, lost):
    return points.masked_fill(lost[..., None], float("nan"))


def ranked(scores, empty):
    return scores.masked_fill(empty, -1e9).argsort(-1)


def train(model, loader):
    optimizer, scaler = torch.optim.Adam(model.parameters(), lr=1e-3), torch.amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
