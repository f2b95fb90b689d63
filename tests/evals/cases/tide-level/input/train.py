"""Map tidal phase to water level; small ReLU regressor."""
import argparse
import math
import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--updates", type=int, default=900)
parser.add_argument("--batch", type=int, default=128)
opts = parser.parse_args()


class Tide(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)
        self.reset()

    def reset(self):
        for lin in (self.a, self.b):
            nn.init.kaiming_normal_(lin.weight, nonlinearity="relu")
            nn.init.constant_(lin.bias, -2.0)   # sparse codes
        nn.init.xavier_uniform_(self.c.weight)
        nn.init.zeros_(self.c.bias)

    def forward(self, x):
        h = torch.relu(self.a(x))
        h = torch.relu(self.b(h))
        return self.c(h).squeeze(-1)


def levels(n, g):
    t = 1000 * torch.rand(n, generator=g)
    m2, s2 = 2 * math.pi * t / 12.42, 2 * math.pi * t / 12.0
    x = torch.stack([m2.sin(), m2.cos(), s2.sin(), s2.cos()], -1)
    y = 1.8 * torch.sin(m2 + 0.4) + 0.6 * torch.sin(s2) + 0.3 * torch.sin(2 * m2)
    return x, 3.0 + y + 0.05 * torch.randn(n, generator=g)


def main():
    torch.manual_seed(8)
    g = torch.Generator().manual_seed(8)
    net = Tide(opts.hidden)
    opt = torch.optim.SGD(net.parameters(), lr=opts.lr)
    print("   upd        sse/n      bias_out    mean(pred)    std(pred)")
    for u in range(1, opts.updates + 1):
        x, y = levels(opts.batch, g)
        pred = net(x)
        err = (pred - y).square().mean()
        opt.zero_grad()
        err.backward()
        opt.step()
        if u % 45 == 0:
            print(f"{u:6d} {err.item():12.5f} {net.c.bias.item():13.5f} {pred.mean().item():13.5f} {pred.std().item():12.2e}")


if __name__ == "__main__":
    main()
