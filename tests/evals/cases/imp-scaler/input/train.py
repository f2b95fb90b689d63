import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)


def speech_like(n=768, bands=40, frames=24, classes=8):
    """Log-mel patches of eight synthetic keywords."""
    proto = torch.randn(classes, bands, 1) * torch.linspace(1, 0.3, frames)
    y = torch.randint(0, classes, (n,))
    x = proto[y] + 0.7 * torch.randn(n, bands, frames)
    return x, y


class Keyword(nn.Module):
    def __init__(self, classes=8):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(40, 64, 5, stride=2), nn.ReLU(),
            nn.Conv1d(64, 64, 3), nn.ReLU(),
        )
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        return self.fc(self.conv(x).mean(-1))


class HalfPrecisionRunner:
    def __init__(self, model, lr=0.05, clip=2.0):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 14, growth_interval=500)
        self.clip = clip

    def train_batch(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16):
            logits = self.model(x)
        loss = F.cross_entropy(logits.float(), y)
        self.scaler.scale(loss).backward()
        gnorm = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.scaler.step(self.opt)
        self.scaler.update()
        return loss.item(), gnorm.item(), (logits.argmax(1) == y).float().mean().item()


def main():
    x, y = speech_like()
    runner = HalfPrecisionRunner(Keyword())
    started = time.time()
    for epoch in range(6):
        perm = torch.randperm(len(y))
        stats = []
        for k in range(0, len(y), 64):
            i = perm[k:k + 64]
            stats.append(runner.train_batch(x[i], y[i]))
        loss, norm, acc = torch.tensor(stats).mean(0).tolist()
        n = len(stats)
        bar = "=" * 20
        print(f"Epoch {epoch + 1}/6\n{n}/{n} [{bar}] - {1000 * (time.time() - started) / (n * (epoch + 1)):.0f}ms/step - "
              f"loss: {loss:.4f} - accuracy: {acc:.4f} - grad_norm: {norm:.1f} - scale: {runner.scaler.get_scale():.0f}")


if __name__ == "__main__":
    main()
