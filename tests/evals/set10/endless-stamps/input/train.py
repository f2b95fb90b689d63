"""Read a stamp (10 kinds) anywhere on a noisy card. Cards are drawn on the fly: there is no end of training data."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CARD, STAMP, KINDS = 15, 9, 10
SHAPES = (np.random.default_rng(123).random((KINDS, STAMP, STAMP)) > 0.5).astype(np.float32)


class Cards(Dataset):
    def __init__(self, length, seed):
        self.length = length
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return self.length

    def __getitem__(self, _):
        kind = int(self.rng.integers(KINDS))
        top, left = self.rng.integers(0, CARD - STAMP + 1, 2)
        card = self.rng.normal(0, 0.35, (CARD, CARD)).astype(np.float32)
        card[top:top + STAMP, left:left + STAMP] += SHAPES[kind] * self.rng.uniform(0.7, 1.2)
        return torch.from_numpy(card), kind


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(CARD * CARD, 384), nn.BatchNorm1d(384), nn.ReLU(),
            nn.Linear(384, 192), nn.BatchNorm1d(192), nn.ReLU(), nn.Linear(192, KINDS))

    def forward(self, x):
        return self.layers(x)


def test(net, loader):
    net.eval()
    loss, ok, n = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            p = net(x)
            loss += F.cross_entropy(p, y, reduction="sum").item()
            ok += (p.argmax(1) == y).sum().item()
            n += len(y)
    return loss / n, ok / n


def main():
    torch.manual_seed(77)
    train_loader = DataLoader(Cards(2400, seed=1), batch_size=50, num_workers=2)
    held_out = Cards(1000, seed=2)
    test_loader = DataLoader([held_out[i] for i in range(len(held_out))], batch_size=250)

    net = Reader()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    epochs = 12
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    seen = 0
    for epoch in range(epochs):
        net.train()
        loss_sum = ok = n = 0
        for x, y in train_loader:
            p = net(x)
            loss = F.cross_entropy(p, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            loss_sum += loss.item() * len(y)
            ok += (p.argmax(1) == y).sum().item()
            n += len(y)
        sched.step()
        seen += n
        tl, ta = test(net, test_loader)
        print(f"epoch {epoch + 1:2d} ({seen} cards)  train {loss_sum / n:.3f} / {ok / n:.1%}   test {tl:.3f} / {ta:.1%}", flush=True)


if __name__ == "__main__":
    main()
