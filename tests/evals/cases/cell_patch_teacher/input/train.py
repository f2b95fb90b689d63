"""BYOL on unlabelled cell patches; the teacher is a momentum copy of the student.

Before the real thing the script checks that the supervised head can fit 96 labelled
patches (scored on the same 96 on purpose: a smoke test of model and labels).
"""
import copy
import math
import sys

import torch
from torch import nn
from tqdm import tqdm

from patches import augment, cells


def backbone():
    return nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
                         nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
                         nn.Conv2d(32, 48, 3, 2, 1), nn.BatchNorm2d(48), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten())


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Linear(h, o))


def smoke_test():
    x, y = cells(96, 7)
    net = nn.Sequential(backbone(), nn.Linear(48, 3))
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(60):
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(f"[smoke test] loss {loss.item():.4f}, accuracy on the same 96 patches "
              f"{(net(x).argmax(1) == y).float().mean():.3f}")


class BYOL(nn.Module):
    def __init__(self, total_steps, base_momentum=0.98):
        super().__init__()
        self.student = nn.Sequential(backbone(), mlp(48, 96, 32))
        self.predictor = mlp(32, 64, 32)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.base, self.total = base_momentum, total_steps

    def loss(self, a, b):
        out = 0.0
        for u, v in ((a, b), (b, a)):
            p = nn.functional.normalize(self.predictor(self.student(u)), dim=-1)
            with torch.no_grad():
                t = nn.functional.normalize(self.teacher(v), dim=-1)
            out = out + 2 - 2 * (p * t).sum(-1).mean()
        return out / 2

    @torch.no_grad()
    def update_teacher(self, step):
        m = 1 - (1 - self.base) * (math.cos(math.pi * step / self.total) + 1) / 2
        for t, s in zip(self.teacher.parameters(), self.student.parameters()):
            t.lerp_(s, 1 - m)
        return m


@torch.no_grad()
def knn_accuracy(encoder, bank, query, k=15):
    encoder.eval()
    (xb, yb), (xq, yq) = bank, query
    zb, zq = (nn.functional.normalize(encoder(x), dim=-1) for x in (xb, xq))
    near = (zq @ zb.T).topk(k).indices
    encoder.train()
    spread = zq.std(0).mean().item()
    return (yb[near].mode(1).values == yq).float().mean().item(), spread


def main():
    torch.manual_seed(10)
    smoke_test()
    x, _ = cells(1600, 0)
    bank, query = cells(3000, 1), cells(1000, 2)
    epochs, batch = 8, 128
    steps = epochs * (len(x) // batch)
    model = BYOL(steps)
    opt = torch.optim.AdamW([*model.student.parameters(), *model.predictor.parameters()], 2e-3, weight_decay=1e-4)
    bar = tqdm(total=steps, file=sys.stdout, mininterval=0.4, ncols=110, ascii=True)
    step = 0
    for epoch in range(epochs):
        for idx in torch.randperm(len(x))[: len(x) // batch * batch].split(batch):
            loss = model.loss(augment(x[idx]), augment(x[idx]))
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            m = model.update_teacher(step)
            bar.set_postfix(loss=f"{loss.item():.4f}", m=f"{m:.4f}", refresh=False)
            bar.update()
        for _ in range(3):                      # repeated with shuffled banks for an error bar
            sub = torch.randperm(len(bank[0]))[:2000]
            acc, spread = knn_accuracy(model.student[0], (bank[0][sub], bank[1][sub]), query)
        tg = sum(p.grad is not None for p in model.teacher.parameters())
        tqdm.write(f"epoch {epoch + 1} loss {loss.item():.4f} knn {acc:.3f} feature_std {spread:.4f} "
                   f"teacher_grads {tg} momentum {m:.4f}", file=sys.stdout)
    bar.close()


if __name__ == "__main__":
    main()
