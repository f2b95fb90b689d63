"""Classify short ECG windows into five rhythms with a small 1-D convolutional network."""

import csv
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
CLASSES, WINDOW, TRAIN, VALID = 5, 96, 1600, 400
EPOCHS, BATCH, LR = 24, 50, 0.02


def make_windows(count, generator):
    """Each rhythm is a base rate with its own second harmonic, phase and noise free to vary."""
    label = torch.randint(0, CLASSES, (count,), generator=generator)
    time = torch.linspace(0, 4 * math.pi, WINDOW)
    phase = torch.rand(count, 1, generator=generator) * 2 * math.pi
    rate = 1.0 + 0.35 * label[:, None].float()
    wave = torch.sin(rate * time + phase) + 0.5 * torch.sin(2 * rate * time + phase * (1 + label[:, None]))
    noise = torch.randn(count, WINDOW, generator=generator) * 0.4
    return (wave + noise)[:, None, :], label


class RhythmNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2, padding=3), nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv1d(32, 32, 5, stride=2, padding=2), nn.ReLU(),
        )
        self.head = nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.head(self.body(x).mean(dim=2))


def train_epoch(model, optimizer, x, y, generator):
    model.train()
    total, norms = 0.0, []
    for rows in torch.randperm(len(x), generator=generator).split(BATCH):
        optimizer.zero_grad()
        logits = model(x[rows])
        loss = F.cross_entropy(logits, y[rows])
        loss.backward()
        norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]).item())
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(x), sum(norms) / len(norms)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)
        loss = F.cross_entropy(logits, y).item()
        accuracy = (logits.argmax(dim=1) == y).float().mean().item()
    return loss, accuracy


def main():
    generator = torch.Generator().manual_seed(3)
    x, y = make_windows(TRAIN, generator)
    x_valid, y_valid = make_windows(VALID, generator)
    model = RhythmNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    with open("metrics.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["epoch", "train_loss", "grad_norm", "lr", "val_loss", "val_acc"])
        for epoch in range(1, EPOCHS + 1):
            lr = schedule.get_last_lr()[0]
            loss, norm = train_epoch(model, optimizer, x, y, generator)
            schedule.step()
            val_loss, val_acc = evaluate(model, x_valid, y_valid)
            table.writerow([epoch, f"{loss:.5f}", f"{norm:.4f}", f"{lr:.4e}", f"{val_loss:.5f}", f"{val_acc:.4f}"])
            print(f"epoch {epoch:2d}/{EPOCHS} train_loss={loss:.4f} grad_norm={norm:.3f} lr={lr:.2e} "
                  f"val_loss={val_loss:.4f} val_acc={val_acc:.3f}", flush=True)



if __name__ == "__main__":
    main()
