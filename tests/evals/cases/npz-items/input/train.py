import tempfile
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from data import RadarFields, write_archive

EPOCHS, BATCH = 2, 32


def build_model():
    layers, c = [], 1
    for w in (16, 32, 32):
        layers += [nn.Conv2d(c, w, 3, stride=2, padding=1), nn.BatchNorm2d(w), nn.ReLU()]
        c = w
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(c * 36, 3))


class Clock:
    def __init__(self):
        self.sums = {"fetch": 0.0, "net": 0.0}
        self.mark = time.perf_counter()

    def lap(self, name):
        now = time.perf_counter()
        self.sums[name] += now - self.mark
        self.mark = now


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as root:
        write_archive(root)
        loader = DataLoader(RadarFields(root), batch_size=BATCH, shuffle=True, num_workers=0, pin_memory=False)
        net = build_model()
        opt = torch.optim.Adam(net.parameters(), lr=1e-3)
        for epoch in range(EPOCHS):
            clock, seen, good = Clock(), 0, 0
            for x, y in loader:
                clock.lap("fetch")
                z = net(x)
                loss = nn.functional.cross_entropy(z, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                seen += len(y)
                good += (z.argmax(1) == y).sum().item()
                clock.lap("net")
            total = sum(clock.sums.values())
            print(f"epoch {epoch}: {seen / total:.0f} samples/s, loss {loss.item():.4f}, acc {good / seen:.3f}, "
                  f"time fetch {clock.sums['fetch']:.2f}s net {clock.sums['net']:.2f}s fetch_share={clock.sums['fetch'] / total:.2f}", flush=True)


if __name__ == "__main__":
    main()
