"""Flower classification from image descriptors with augmentation and heavy dropout."""
import json
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(19)
CLASSES, DIM = 10, 48
PROTO = torch.randn(CLASSES, DIM)


def descriptors(n):
    y = torch.randint(0, CLASSES, (n,))
    return PROTO[y] + 1.6 * torch.randn(n, DIM), y


def augment(x):
    """Feature cutout and jitter, training only."""
    return (x + 0.5 * torch.randn_like(x)) * (torch.rand_like(x) > 0.2)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(DIM, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, CLASSES))

    def forward(self, x):
        return self.f(x)


def main():
    tr, va, te = descriptors(4000), descriptors(1000), descriptors(1000)
    loader = DataLoader(TensorDataset(*tr), batch_size=64, shuffle=True, drop_last=True)
    model = Classifier()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=12 * len(loader))
    for epoch in range(12):
        model.train()
        n = hit = total = 0
        for x, y in loader:
            out = model(augment(x))
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            n, hit, total = n + len(y), hit + (out.argmax(1) == y).sum().item(), total + loss.item() * len(y)
        model.eval()
        with torch.no_grad():
            out = model(va[0])
        print(json.dumps({"epoch": epoch, "train_loss": round(total / n, 4), "train_acc": round(hit / n, 4),
                          "val_loss": round(nn.functional.cross_entropy(out, va[1]).item(), 4),
                          "val_acc": round((out.argmax(1) == va[1]).float().mean().item(), 4),
                          "lr": round(sched.get_last_lr()[0], 6)}))
    with torch.no_grad():
        print(json.dumps({"test_acc": round((model(te[0]).argmax(1) == te[1]).float().mean().item(), 4)}))


if __name__ == "__main__":
    main()
