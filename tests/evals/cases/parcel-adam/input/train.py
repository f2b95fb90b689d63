"""Parcel sorting: read 6-letter routing codes from noisy one-hot images with a Transformer."""
from dataclasses import dataclass
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Setup:
    letters: int = 12
    positions: int = 6
    d: int = 48
    layers: int = 2
    lr: float = 1e-1
    iters: int = 300
    batch: int = 32


class Reader(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.inp = nn.Linear(20, s.d)
        self.pos = nn.Parameter(0.02 * torch.randn(s.positions, s.d))
        self.enc = nn.ModuleList(nn.TransformerEncoderLayer(s.d, 4, 4 * s.d, dropout=0.0, batch_first=True) for _ in range(s.layers))
        self.out = nn.Linear(s.d, s.letters)

    def forward(self, x):
        h = self.inp(x) + self.pos
        for layer in self.enc:
            h = layer(h)
        return self.out(h)


class Codes:
    def __init__(self, s, seed=0):
        self.g, self.s = torch.Generator().manual_seed(seed), s
        self.glyph = torch.randn(s.letters, 20, generator=self.g)

    def batch(self):
        y = torch.randint(0, self.s.letters, (self.s.batch, self.s.positions), generator=self.g)
        mixed = self.glyph[y] + 0.6 * self.glyph[y].roll(1, 1)
        return mixed + 0.3 * torch.randn(mixed.shape, generator=self.g), y


def main():
    s = Setup()
    torch.manual_seed(1)
    net, codes = Reader(s), Codes(s)
    adam = torch.optim.Adam(net.parameters(), lr=s.lr)
    width = 64
    print("+" + "-" * width + "+")
    for it in range(s.iters):
        x, y = codes.batch()
        out = net(x)
        ce = F.cross_entropy(out.flatten(0, 1), y.flatten())
        adam.zero_grad()
        ce.backward()
        gn = nn.utils.get_total_norm([p.grad for p in net.parameters()]).item()
        adam.step()
        if it < 10 or it % 15 == 0:
            row = f" iter {it:4d} | ce {ce.item():8.4f} | char acc {(out.argmax(-1) == y).float().mean().item():.3f} | ||g|| {gn:8.3f} | lr {s.lr:g}"
            print("|" + row.ljust(width) + "|")
    print("+" + "-" * width + "+")


if __name__ == "__main__":
    main()
