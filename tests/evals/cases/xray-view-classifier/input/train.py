"""Frontal / lateral / oblique view classifier for chest films stored as .npy."""
import pathlib
import tempfile
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

VIEWS = ["frontal", "lateral", "oblique"]


def export_study(root, n=900, seed=0):
    """The PACS export: film_<k>.npy plus views.txt, one line per film, in export order."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(-1, 1, 16)
    xx, yy = np.meshgrid(grid, grid)
    lines = []
    for k in range(n):
        v = int(rng.integers(0, 3))
        shape = [np.exp(-xx ** 2 * 4 - yy ** 2), np.exp(-(xx - 0.4) ** 2 * 8 - yy ** 2), np.exp(-(xx + yy) ** 2 * 4)][v]
        np.save(root / f"film_{k}.npy", (shape + 0.3 * rng.standard_normal((16, 16))).astype(np.float32))
        lines.append(VIEWS[v])
    (root / "views.txt").write_text("\n".join(lines))


class Films(Dataset):
    def __init__(self, root):
        self.files = sorted(root.glob("film_*.npy"))
        self.labels = [VIEWS.index(v) for v in (root / "views.txt").read_text().split()]
        assert len(self.files) == len(self.labels)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return torch.from_numpy(np.load(self.files[i]))[None], self.labels[i]


def network():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
                         nn.Linear(32 * 64, 64), nn.ReLU(), nn.Linear(64, 3))


def main():
    torch.manual_seed(0)
    root = pathlib.Path(tempfile.mkdtemp(prefix="films_"))
    export_study(root)
    films = Films(root)
    print("films:", len(films), "label counts:", np.bincount(films.labels).tolist())
    order = torch.randperm(len(films)).tolist()
    train = DataLoader(Subset(films, order[:720]), batch_size=32, shuffle=True)
    val = DataLoader(Subset(films, order[720:]), batch_size=180)
    net = network()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(14):
        hit = tot = 0
        for x, y in train:
            out = net(x)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            hit, tot = hit + (out.argmax(1) == y).sum().item(), tot + loss.item() * len(y)
        with torch.no_grad():
            xv, yv = next(iter(val))
            va = (net(xv).argmax(1) == yv).float().mean().item()
        print(f"[{epoch:02d}] train loss {tot / 720:.3f} acc {hit / 720:.3f} | val acc {va:.3f}")


if __name__ == "__main__":
    main()
