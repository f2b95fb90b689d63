import torch
import torch.nn as nn


def set_grad(part, flag):
    for w in part.parameters():
        w.requires_grad = flag


body = nn.Sequential(nn.Linear(10, 20), nn.ReLU())
net = nn.Sequential(body, nn.Linear(20, 2))
for w in body.parameters():
    w.requires_grad = False
optimizer = torch.optim.AdamW((w for w in net.parameters() if w.requires_grad), lr=1e-3)


def one_pass(data):
    for x, y in data:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()


one_pass([])
for w in body.parameters():
    w.requires_grad = True  # FAULT C162
one_pass([])
