"""Small pattern classifier trained the modern way: mixup, label smoothing, dropout, EMA-free."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

K, N_TRAIN, N_VAL = 8, 2400, 600


def textures(n, rng):
    """oriented gratings, 8 orientations"""
    y = rng.integers(0, K, n)
    th = np.pi * y / K + rng.normal(0, 0.05, n)
    g = np.arange(14) - 6.5
    u = g[None, :, None] * np.cos(th)[:, None, None] + g[None, None, :] * np.sin(th)[:, None, None]
    x = np.sin(1.6 * u + rng.uniform(0, 6.28, n)[:, None, None]) + rng.normal(0, 0.7, (n, 14, 14))
    return torch.tensor(x[:, None], dtype=torch.float32), torch.tensor(y)


def mixup(x, y, alpha, rng):
    lam = rng.beta(alpha, alpha)
    p = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[p], y, y[p], lam


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.BatchNorm2d(32), nn.ReLU(), nn.Dropout2d(0.2),
                                  nn.Conv2d(32, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.fc = nn.Sequential(nn.Dropout(0.4), nn.Linear(32, K))

    def forward(self, x):
        return self.fc(self.conv(x).mean((2, 3)))


def main(epochs=14, bs=50):
    rng = np.random.default_rng(6)
    torch.manual_seed(6)
    (x, y), (xv, yv) = textures(N_TRAIN, rng), textures(N_VAL, rng)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.2, total_steps=epochs * (N_TRAIN // bs))
    print("epoch,train_loss,train_acc,val_loss,val_acc,lr")
    for e in range(epochs):
        net.train()
        tl = ta = 0.0
        for idx in torch.randperm(N_TRAIN).split(bs):
            xm, ya, yb, lam = mixup(x[idx], y[idx], 1.0, rng)
            out = net(xm)
            loss = (lam * F.cross_entropy(out, ya, label_smoothing=0.1) + (1 - lam) * F.cross_entropy(out, yb, label_smoothing=0.1))
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            tl += loss.item() * len(idx)
            ta += (out.argmax(1) == ya).sum().item()
        net.eval()
        with torch.no_grad():
            out = net(xv)
            vl, va = F.cross_entropy(out, yv).item(), (out.argmax(1) == yv).float().mean().item()
        print(f"{e},{tl / N_TRAIN:.4f},{ta / N_TRAIN:.4f},{vl:.4f},{va:.4f},{sched.get_last_lr()[0]:.5f}", flush=True)


if __name__ == "__main__":
    main()
