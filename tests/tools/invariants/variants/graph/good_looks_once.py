"""Evaluations that build no graph worth a word: nothing trains, or the loop is left in its first turn; a hook that looks
at one pass behind the training; a sum that lasts for one batch; a share of sizes."""
import torch
from torch import nn
from torch.utils.data import DataLoader


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 3, 1))

    def forward(self, x):
        kept = x[x.mean((1, 2, 3)) > 0]
        return self.body(x), kept.size(0) / x.size(0)


class Sampler(nn.Module):
    def __init__(self, painter):
        super().__init__()
        self.painter = painter

    def forward(self, noise):
        return self.painter(noise)[0].square().mean((1, 2, 3))


def first_pictures(painter, loader):
    painter.eval()
    for pictures in loader:
        shown, _ = painter(pictures)
        break
    return shown.detach().cpu().numpy()


def spread(painter, batches):
    sampler = Sampler(painter)
    sampler.eval().requires_grad_(False).to("cpu")
    return torch.cat([sampler(torch.randn(4, 3, 8, 8)) for _ in range(batches)]).std()


def bright(painter, loader):
    painter.eval()
    share = 0
    with torch.no_grad():
        for pictures in loader:
            _, part = painter(pictures)
            share += part
    return share / len(loader)


rows = torch.randn(16, 3, 8, 8)
loader = DataLoader(rows, batch_size=4, shuffle=True)
painter, judge = Painter(), nn.Sequential(nn.Flatten(), nn.Linear(192, 1))
optimizer = torch.optim.Adam(painter.parameters(), lr=1e-3)
other = torch.optim.Adam(judge.parameters(), lr=1e-3)
for epoch in range(3):
    for pictures in loader:
        painted, _ = painter(pictures)
        loss = (painted - pictures).square().mean() - judge(painted).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        of_judge = 0.0
        for _ in range(2):
            verdict = judge(painted.detach()).mean() - judge(pictures).mean()
            other.zero_grad()
            verdict.backward()
            other.step()
            of_judge += verdict
        print(loss.item(), of_judge.item() / 2)

spread(painter.eval(), 3)
first_pictures(painter, loader)
bright(painter, loader)
seen = []


def look(module, given, made):
    seen.append(made)


painter.body[0].register_forward_hook(look)
painter(rows[:2])
print(seen)
