# Transfer: a small net trained on leaf types 0-4 becomes the backbone for a 5-way task on the types 5-9.
import copy
import json

import torch
import torch.nn as nn
import torch.nn.functional as F

CFG = {
    "seed": 11,
    "pretrain_epochs": 15,
    "finetune_epochs": 12,
    "lr": 2e-3,
    "weight_decay": 1e-4,
    "batch": 64,
    "freeze": ["stem", "body"],
}


def load_task(lo, hi, n=700):
    g = torch.Generator().manual_seed(2024)
    proto = torch.rand(10, 1, 8, 8, generator=g)
    y = torch.randint(lo, hi, (n,), generator=g)
    x = proto[y] + 0.25 * torch.randn(n, 1, 8, 8, generator=g)
    y = y - lo
    return (x[:520], y[:520]), (x[520:], y[520:])


class SmallNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.head = nn.Linear(128, classes)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).flatten(1))


def batches(x, y, size):
    for idx in torch.randperm(len(y)).split(size):
        yield x[idx], y[idx]


def run_epoch(net, opt, data):
    net.train()
    tot = 0.0
    for x, y in batches(*data, CFG["batch"]):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item() * len(y)
    return tot / len(data[1])


@torch.no_grad()
def accuracy(net, data):
    net.eval()
    return (net(data[0]).argmax(1) == data[1]).float().mean().item()


def make_optimizer(net):
    decay, plain = [], []
    for name, p in net.named_parameters():
        (plain if p.ndim == 1 else decay).append(p)
    return torch.optim.AdamW([{"params": decay, "weight_decay": CFG["weight_decay"]},
                              {"params": plain, "weight_decay": 0.0}], lr=CFG["lr"])


def pretrain():
    train, test = load_task(0, 5)
    net = SmallNet(5)
    opt = make_optimizer(net)
    for _ in range(CFG["pretrain_epochs"]):
        loss = run_epoch(net, opt, train)
    print(json.dumps({"phase": "pretrain", "loss": round(loss, 4), "acc": round(accuracy(net, test), 4)}))
    return net


def finetune(source):
    train, test = load_task(5, 10)
    net = copy.deepcopy(source)
    for name in CFG["freeze"]:
        getattr(net, name).requires_grad_(False)
    opt = make_optimizer(net)
    net.head = nn.Linear(net.head.in_features, 5)
    n_train = sum(p.numel() for p in net.parameters() if p.requires_grad)
    print(json.dumps({"phase": "finetune", "trainable": n_train, "groups": [len(g["params"]) for g in opt.param_groups]}))
    for epoch in range(CFG["finetune_epochs"]):
        loss = run_epoch(net, opt, train)
        print(json.dumps({"phase": "finetune", "epoch": epoch, "loss": round(loss, 4), "acc": round(accuracy(net, test), 4)}))


if __name__ == "__main__":
    torch.manual_seed(CFG["seed"])
    finetune(pretrain())
