import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from progressive import Glyphs

SCHEDULE = [8, 8, 14, 20, 28, 28, 28]


class GlyphCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 5, padding=2), nn.ReLU(), nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(7),
        )
        self.classifier = nn.Linear(48 * 49, Glyphs.N_CLASSES)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class Trainer:
    def __init__(self, net, train_set, valid_set, workers=2):
        self.net = net
        self.train_set = train_set
        self.loader = DataLoader(train_set, batch_size=50, shuffle=True, num_workers=workers,
                                 persistent_workers=True, prefetch_factor=4)
        self.valid = DataLoader(valid_set, batch_size=100)
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        self.lossfn = nn.CrossEntropyLoss()

    def train_one(self, epoch):
        self.net.train()
        acc_loss, sides = 0.0, set()
        for img, y in self.loader:
            sides.add(tuple(img.shape[-2:]))
            loss = self.lossfn(self.net(img), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            acc_loss += loss.item()
        return acc_loss / len(self.loader), sides

    def accuracy(self):
        self.net.eval()
        with torch.no_grad():
            good = sum((self.net(i).argmax(1) == y).sum().item() for i, y in self.valid)
        return good / len(self.valid.dataset)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.train_set.set_epoch(epoch)
            t0 = time.perf_counter()
            tr, sides = self.train_one(epoch)
            dt = time.perf_counter() - t0
            shape = ",".join(f"{h}x{w}" for h, w in sorted(sides))
            print(f"epoch={epoch} size={self.train_set.side} batches={shape} train_loss={tr:.4f} "
                  f"val_acc@28={self.accuracy():.3f} time={dt:.2f}s", flush=True)


def main():
    torch.manual_seed(0)
    trainer = Trainer(GlyphCNN(), Glyphs(1500, 5, SCHEDULE), Glyphs(400, 6))
    trainer.fit(len(SCHEDULE))


if __name__ == "__main__":
    main()
