"""Yield of solar parks: four sites, one micro-batch of each site makes an optimizer step."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset

SITES = ("coast", "valley", "ridge", "desert")


class Park(Dataset):
    """Rows come site by site in blocks of one micro-batch, so that each site gets the same share of a step."""

    def __init__(self, n, block, seed):
        g = torch.Generator().manual_seed(seed)
        self.site = (torch.arange(n) // block) % len(SITES)
        self.x = torch.randn(n, 8, generator=g)
        w = torch.randn(len(SITES), 8, generator=torch.Generator().manual_seed(99))
        b = torch.tensor([3.0, -2.0, 0.5, -4.0])
        lin = (self.x * w[self.site]).sum(1)
        self.y = b[self.site] + lin + 0.5 * torch.sin(2 * lin) + 0.1 * torch.randn(n, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.cat([self.x[i], F.one_hot(self.site[i], len(SITES)).float()]), self.y[i], self.site[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, x):
        return self.body(x).squeeze(-1)


@torch.no_grad()
def errors(model, loader):
    model.eval()
    total, n = torch.zeros(4), torch.zeros(4)
    for x, y, s in loader:
        e = (model(x) - y).abs()
        total.scatter_add_(0, s, e)
        n.scatter_add_(0, s, torch.ones_like(e))
    return (total / n).tolist()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--micro", type=int, default=32)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--epochs", type=int, default=12)
    a = p.parse_args()
    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=len(SITES))
    train = DataLoader(Park(4096, a.micro, 1), batch_size=a.micro)
    val = DataLoader(Park(1024, a.micro, 2), batch_size=256)
    model = Net()
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr)
    model, opt, train, val = accelerator.prepare(model, opt, train, val)
    updates = 0
    for epoch in range(a.epochs):
        model.train()
        running = 0.0
        for x, y, _ in train:
            with accelerator.accumulate(model):
                model.zero_grad()
                loss = F.mse_loss(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 5.0)
                    updates += 1
                opt.step()
            running += loss.item()
        mae = "  ".join(f"{s} {e:.3f}" for s, e in zip(SITES, errors(model, val)))
        accelerator.print(f"epoch {epoch:2d} updates {updates:4d} loss {running / len(train):8.4f} | mae {mae}")


if __name__ == "__main__":
    main()
