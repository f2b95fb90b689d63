import copy

import torch
import torch.nn.functional as F

from backbone import Backbone, BirdClassifier
from spectro import chirps


def batches(x, y, size):
    for idx in torch.randperm(len(x)).split(size):
        yield x[idx], y[idx]


def pretrain(epochs=3):
    """stands for the public checkpoint"""
    net = BirdClassifier(8, Backbone())
    x, y = chirps(500, 8, 100, "general")
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for _ in range(epochs):
        for bx, by in batches(x, y, 32):
            opt.zero_grad()
            F.cross_entropy(net(bx), by).backward()
            opt.step()
    return copy.deepcopy(net.backbone)


class FineTuner:
    def __init__(self, net, lr_head=3e-3, warm_epochs=5, epochs=16):
        self.net, self.warm, self.epochs = net, warm_epochs, epochs
        self.net.set_backbone_trainable(False)
        self.optim = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=lr_head, weight_decay=0.01)

    def phase(self, epoch):
        if epoch == self.warm:
            self.net.set_backbone_trainable(True)
            n = sum(p.numel() for p in self.net.parameters() if p.requires_grad)
            print(f"-- epoch {epoch}: full network, {n:,} trainable parameters")

    def fit(self, x, y, xv, yv):
        for epoch in range(self.epochs):
            self.phase(epoch)
            total = 0.0
            for bx, by in batches(x, y, 32):
                loss = F.cross_entropy(self.net(bx), by)
                self.net.zero_grad()
                loss.backward()
                self.optim.step()
                total += loss.item() * len(by)
            with torch.no_grad():
                acc = (self.net(xv).argmax(1) == yv).float().mean()
            print(f"ep{epoch:02d}\ttrain {total / len(x):.4f}\tval acc {acc:.3f}")


def main():
    torch.manual_seed(33)
    net = BirdClassifier(6, pretrain())
    print("checkpoint loaded, fine-tuning on 6 species")
    FineTuner(net).fit(*chirps(480, 6, 1, "birds"), *chirps(240, 6, 2, "birds"))


if __name__ == "__main__":
    main()
