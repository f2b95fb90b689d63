import torch
from torch import nn


def switch(block, on):
    for weight in block.parameters():
        weight.requires_grad = on


def tune(body, top, loader):
    net = nn.Sequential(body, top)
    switch(body, False)
    opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
    for epoch in range(9):
        if epoch == 3:
            switch(body, True)  # FAULT C162
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            opt.step()


def main(loader):
    tune(nn.Linear(9, 9), nn.Linear(9, 1), loader)
