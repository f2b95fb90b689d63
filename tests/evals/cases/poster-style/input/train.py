import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from imagestore import ImageStore

PAGE = os.sysconf("SC_PAGE_SIZE")


def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * PAGE / 1e6


class Posters(Dataset):
    def __init__(self, store):
        self.store = store

    def __len__(self):
        return len(self.store)

    def __getitem__(self, i):
        img = torch.from_numpy(self.store.get(i))
        top = int(torch.randint(0, 32, (1,)))
        return img[:, top:top + 64, :64].clone(), int(self.store.labels[i])


class StyleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU())
        self.fc = nn.Linear(16 * 4, 4)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.conv(x), 2).flatten(1))


def main():
    torch.manual_seed(0)
    store = ImageStore(n=2600, side=96, seed=1, cache_items=1800)
    loader = DataLoader(Posters(store), batch_size=50, shuffle=True)
    net = StyleNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    step = 0
    for epoch in range(4):
        correct = 0
        for x, y in loader:
            out = net(x)
            loss = F.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            correct += (out.argmax(1) == y).sum().item()
            if step % 8 == 0:
                print(f"epoch {epoch} step {step:4d} loss {loss.item():.4f} rss {rss():.0f} MB", flush=True)
            step += 1
        print(f"epoch {epoch} acc {correct / len(store):.3f}", flush=True)


if __name__ == "__main__":
    main()
