"""Distil a large leaf-species classifier into a small one for phones."""
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(30)
SPECIES, DIM = 12, 20
CENTRES = torch.randn(SPECIES, DIM)


def leaves(n):
    y = torch.randint(0, SPECIES, (n,))
    return CENTRES[y] + 1.1 * torch.randn(n, DIM), y


def mlp(width, depth):
    layers, d = [], DIM
    for _ in range(depth):
        layers += [nn.Linear(d, width), nn.ReLU()]
        d = width
    return nn.Sequential(*layers, nn.Linear(d, SPECIES))


def train_teacher(x, y):
    net = mlp(256, 2)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
    for _ in range(4):
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(net(x[idx]), y[idx], label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
    return net.eval().requires_grad_(False)


def distill_loss(student_logits, teacher_logits, temperature=2.0):
    s = F.softmax(student_logits / temperature, dim=-1)
    t = F.softmax(teacher_logits / temperature, dim=-1)
    return F.kl_div(s, t, reduction="batchmean") * temperature ** 2


@torch.no_grad()
def report(net, x, y):
    prob = net(x).softmax(-1)
    conf, pick = prob.max(-1)
    nll = F.nll_loss(prob.clamp_min(1e-12).log(), y)
    return f"acc {(pick == y).float().mean():.3f} nll {nll:.3f} mean confidence {conf.mean():.3f}"


def main():
    x, y = leaves(4000)
    xt, yt = leaves(1500)
    teacher = train_teacher(x, y)
    print("teacher:", report(teacher, xt, yt))
    student = mlp(24, 1)
    opt = torch.optim.Adam(student.parameters(), lr=3e-3)
    for epoch in range(15):
        tot = 0.0
        for idx in torch.randperm(len(x)).split(64):
            loss = distill_loss(student(x[idx]), teacher(x[idx]))
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * len(idx)
        print(f"distil epoch {epoch:2d} kd_loss {tot / len(x):+.4f} student {report(student, xt, yt)}")


if __name__ == "__main__":
    main()
