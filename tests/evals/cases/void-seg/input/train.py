import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CLASSES = ("road", "building", "vegetation", "sky", "vehicle")


class StreetScenes(Dataset):
    """48x64 crops; boundary pixels were left unlabelled by the annotators in part of the collection."""

    def __init__(self, n=240, seed=0):
        self.rng_seed, self.n = seed, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(self.rng_seed * 10_000 + i)
        lab = np.zeros((48, 64), dtype=np.uint8)
        lab[:20] = 3
        lab[12:30, : rng.integers(10, 30)] = 1
        lab[16:32, rng.integers(35, 50):] = 2
        r, c = rng.integers(28, 40), rng.integers(5, 50)
        lab[r:r + 5, c:c + 9] = 4
        if i % 20 == 13:
            edge = (np.diff(lab.astype(int), axis=0, prepend=lab[:1].astype(int)) != 0)
            lab[edge] = 255
        base = np.array([[0.3, 0.3, 0.3], [0.5, 0.4, 0.3], [0.2, 0.5, 0.2], [0.5, 0.7, 0.9], [0.8, 0.1, 0.1]])
        img = base[np.minimum(lab, 4)] + 0.08 * rng.standard_normal((48, 64, 3))
        return torch.from_numpy(img.transpose(2, 0, 1).astype(np.float32)), torch.from_numpy(lab.astype(np.int64))


class FCN(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=2, dilation=2), nn.ReLU())
        self.cls = nn.Conv2d(16, n, 1)

    def forward(self, x):
        return self.cls(self.body(x))


def pixel_acc(z, y):
    known = y < len(CLASSES)
    return (z.argmax(1)[known] == y[known]).float().mean()


def main():
    torch.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    loader = DataLoader(StreetScenes(), batch_size=8, shuffle=True)
    net = FCN(len(CLASSES)).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(4):
        for it, (img, lab) in enumerate(loader):
            img, lab = img.to(device, non_blocking=True), lab.to(device, non_blocking=True)
            out = net(img)
            loss = criterion(out, lab)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            acc = pixel_acc(out.detach(), lab)
            if it % 10 == 0 or it == 1:
                print(f"[{epoch}][{it:3d}/{len(loader)}] loss {loss.item():.4f} pixel acc {acc.item():.3f}", flush=True)
    print("done")


if __name__ == "__main__":
    main()
