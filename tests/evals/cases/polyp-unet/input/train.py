import csv

import torch
from torch import nn
from torch.utils.data import DataLoader

from augment import Chain, MaybeMirror, MaybeQuarterTurn
from frames import EndoscopyFrames


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class MiniUNet(nn.Module):
    def __init__(self, w=12):
        super().__init__()
        self.e1, self.e2, self.mid = conv(1, w), conv(w, 2 * w), conv(2 * w, 4 * w)
        self.up2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2)
        self.d2 = conv(4 * w, 2 * w)
        self.up1 = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.d1 = conv(2 * w, w)
        self.out = nn.Conv2d(w, 1, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        a = self.e1(x)
        b = self.e2(self.pool(a))
        c = self.mid(self.pool(b))
        b = self.d2(torch.cat([self.up2(c), b], 1))
        a = self.d1(torch.cat([self.up1(b), a], 1))
        return self.out(a)


def soft_dice(logit, m, eps=1.0):
    p = logit.sigmoid()
    inter = (p * m).sum((1, 2, 3))
    return 1 - ((2 * inter + eps) / (p.sum((1, 2, 3)) + m.sum((1, 2, 3)) + eps)).mean()


@torch.no_grad()
def dice(net, loader):
    net.eval()
    num = den = 0.0
    for x, m in loader:
        p = (net(x) > 0).float()
        num += 2 * (p * m).sum().item()
        den += (p.sum() + m.sum()).item()
    return num / max(den, 1.0)


def main():
    torch.manual_seed(21)
    aug = Chain(MaybeMirror(-1), MaybeMirror(-2), MaybeQuarterTurn())
    train = DataLoader(EndoscopyFrames(480, 0, aug), batch_size=16, shuffle=True)
    val = DataLoader(EndoscopyFrames(96, 1), batch_size=32)
    net = MiniUNet()
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    epochs = 8
    with open("metrics.csv", "w", newline="") as fh:
        table = csv.writer(fh)
        table.writerow(["epoch", "bce", "dice_loss", "val_dice"])
        for ep in range(epochs):
            net.train()
            s = [0.0, 0.0]
            for k, (x, m) in enumerate(train, 1):
                y = net(x)
                bce = nn.functional.binary_cross_entropy_with_logits(y, m)
                dl = soft_dice(y, m)
                opt.zero_grad()
                (bce + dl).backward()
                opt.step()
                s[0] += bce.item()
                s[1] += dl.item()
                if k == len(train):
                    bar = "#" * 20
                    print(f"Epoch {ep + 1}/{epochs}: 100%|{bar}| {k}/{len(train)} [bce={s[0] / k:.4f}, dice_loss={s[1] / k:.4f}]")
            v = dice(net, val)
            print(f"    val/dice = {v:.4f}")
            table.writerow([ep + 1, f"{s[0] / k:.4f}", f"{s[1] / k:.4f}", f"{v:.4f}"])


if __name__ == "__main__":
    main()
