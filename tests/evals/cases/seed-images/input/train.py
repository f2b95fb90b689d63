import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from data import SeedBelt
from prepare import KINDS, write


def net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, len(KINDS)),
    )


def accuracy(model, loader):
    model.eval()
    with torch.inference_mode():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def main():
    write("belt/train", 1200, seed=1)
    write("belt/val", 300, seed=2)
    torch.manual_seed(0)
    train = DataLoader(SeedBelt("belt/train", flip=True), batch_size=40, shuffle=True)
    val = DataLoader(SeedBelt("belt/val"), batch_size=100)
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    lossf = nn.CrossEntropyLoss()
    print(f"{len(train.dataset)} pictures, classes {', '.join(KINDS)}")
    for epoch in range(10):
        model.train()
        loss_sum = hits = 0
        for x, y in train:
            out = model(x)
            loss = lossf(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            loss_sum += loss.item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
        n = len(train.dataset)
        print(f"Epoch {epoch + 1}/10 - loss: {loss_sum / n:.4f} - acc: {hits / n:.4f} - val_acc: {accuracy(model, val):.4f}")


if __name__ == "__main__":
    main()
