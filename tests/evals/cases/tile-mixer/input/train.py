from dataclasses import dataclass
import numpy as np
import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm


@dataclass
class Opts:
    lr: float = 0.15
    momentum: float = 0.9
    epochs: int = 6
    batch: int = 50
    width: int = 40
    blocks: int = 2


class MixerBlock(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tok = nn.Sequential(nn.Linear(tokens, 32), nn.GELU(), nn.Linear(32, tokens))
        self.ch = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.ch(self.n2(x))


class Mixer(nn.Module):
    def __init__(self, o, classes=8, patch=4, size=12):
        super().__init__()
        self.patch = patch
        self.stem = nn.Linear(patch * patch, o.width)
        self.blocks = nn.Sequential(*[MixerBlock((size // patch) ** 2, o.width) for _ in range(o.blocks)])
        self.head = nn.Linear(o.width, classes)

    def forward(self, img):
        p = img.unfold(1, self.patch, self.patch).unfold(2, self.patch, self.patch)
        return self.head(self.blocks(self.stem(p.flatten(1, 2).flatten(2))).mean(1))


def tiles(n, seed):
    rng = np.random.default_rng(77)
    base = rng.normal(size=(8, 12, 12))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 8, n)
    x = 0.6 * base[y] + 1.6 * rng.normal(size=(n, 12, 12))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def main():
    o = Opts()
    torch.manual_seed(0)
    x, y = tiles(2000, 1)
    net = Mixer(o)
    sgd = torch.optim.SGD(net.parameters(), lr=o.lr, momentum=o.momentum, nesterov=True)
    annealer = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=o.epochs, eta_min=1e-4)
    tb = SummaryWriter("runs")
    step = 0
    for epoch in range(o.epochs):
        bar = tqdm(torch.randperm(len(x)).split(o.batch), desc=f"epoch {epoch}", ncols=110, mininterval=0.0, miniters=8)
        for idx in bar:
            objective = nn.functional.cross_entropy(net(x[idx]), y[idx])
            sgd.zero_grad()
            objective.backward()
            sgd.step()
            lr = sgd.param_groups[0]["lr"]
            annealer.step()
            step += 1
            tb.add_scalar("train/objective", objective.item(), step)
            tb.add_scalar("train/lr", lr, step)
            bar.set_postfix(objective=f"{objective.item():.3f}", lr=f"{lr:.5f}", refresh=False)
    tb.close()


if __name__ == "__main__":
    main()
