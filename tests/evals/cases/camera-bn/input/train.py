import logging
import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", datefmt="%H:%M:%S")
log = logging.getLogger("defects")

N_CAM, N_CLASS, SIZE = 6, 4, 12


class LineScans(Dataset):
    """Surface defects photographed by several cameras; exposure differs between cameras."""

    def __init__(self, per_cam, seed):
        g = torch.Generator().manual_seed(seed)
        pat = torch.randn(N_CLASS, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(77))
        gain = torch.tensor([0.2, 0.3, 0.5, 0.8, 1.2, 1.5])
        bias = torch.tensor([-12.0, 6.0, 0.0, 14.0, -6.0, 20.0])
        self.cam = torch.arange(N_CAM).repeat_interleave(per_cam)
        self.y = torch.randint(0, N_CLASS, (len(self.cam),), generator=g)
        x = pat[self.y] + 0.8 * torch.randn(len(self.cam), 1, SIZE, SIZE, generator=g)
        self.x = x * gain[self.cam][:, None, None, None] + bias[self.cam][:, None, None, None]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class CameraSampler(Sampler):
    """Yields batches that can be read sequentially from the archive of one camera."""

    def __init__(self, cam, batch_size):
        self.cam, self.bs = cam, batch_size

    def __len__(self):
        return sum(int((self.cam == c).sum()) // self.bs for c in range(N_CAM))

    def __iter__(self):
        out = []
        for c in range(N_CAM):
            idx = (self.cam == c).nonzero().flatten().tolist()
            random.shuffle(idx)
            out += [idx[k:k + self.bs] for k in range(0, len(idx) - self.bs + 1, self.bs)]
        random.shuffle(out)
        return iter(out)


def net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 16, 3, stride=2, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 16, N_CLASS))


@torch.no_grad()
def evaluate(model, ds):
    model.eval()
    pred = model(ds.x).argmax(1)
    per_cam = [(pred[ds.cam == c] == ds.y[ds.cam == c]).float().mean().item() for c in range(N_CAM)]
    model.train()
    return (pred == ds.y).float().mean().item(), per_cam


def main():
    random.seed(0)
    torch.manual_seed(0)
    train, val = LineScans(160, 1), LineScans(60, 2)
    loader = DataLoader(train, batch_sampler=CameraSampler(train.cam, 32))
    model = net()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 11):
        hit = n = 0
        for x, y in loader:
            z = model(x)
            loss = nn.functional.cross_entropy(z, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            hit += (z.argmax(1) == y).sum().item()
            n += len(y)
        acc, cams = evaluate(model, val)
        tr, _ = evaluate(model, train)
        log.info("epoch %02d loss=%.3f running_acc=%.3f | eval: train=%.3f val=%.3f per camera %s", epoch, loss.item(), hit / n, tr, acc,
                 " ".join(f"{c:.2f}" for c in cams))


if __name__ == "__main__":
    main()
