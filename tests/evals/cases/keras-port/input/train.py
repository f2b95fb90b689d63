"""PyTorch port of our Keras sensor classifier (1-D convs over accelerometer windows)."""
import sys
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)
np.random.seed(21)


def same_conv(c_in, c_out, k, stride=1):
    return nn.Conv1d(c_in, c_out, k, stride=stride, padding=k // 2, bias=False)


def bn(c):
    # Keras layer: BatchNormalization(momentum=0.99, epsilon=1e-3)
    return nn.BatchNorm1d(c, momentum=0.99, eps=1e-3)


class ActivityNet(nn.Module):
    def __init__(self, axes=3, classes=6):
        super().__init__()
        self.net = nn.Sequential(
            same_conv(axes, 16, 7, 2), bn(16), nn.ReLU(),
            same_conv(16, 32, 5, 2), bn(32), nn.ReLU(),
            same_conv(32, 32, 3, 2), bn(32), nn.ReLU())
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(64, classes)
        for m in self.modules():
            if isinstance(m, (nn.Conv1d, nn.Linear)):
                nn.init.xavier_uniform_(m.weight)

    def forward(self, x):
        h = self.net(x)
        h = torch.cat([h.mean(-1), h.amax(-1)], dim=1)
        return self.out(self.drop(h))


def windows(n, seed, length=64):
    """six activities; cadence and intensity depend on the activity, orientation and gain on the wearer"""
    r = np.random.default_rng(seed)
    y = r.integers(6, size=n)
    t = np.arange(length) / 32.0
    cadence = np.array([0.6, 1.2, 1.9, 2.7, 3.6, 5.0])[y][:, None] * r.normal(1, 0.05, (n, 1))
    power = np.array([0.4, 0.8, 1.0, 1.6, 2.4, 1.2])[y][:, None] * r.lognormal(0, 0.25, (n, 1))
    ph = r.uniform(0, 2 * np.pi, (n, 3))
    axes = [power * np.sin(2 * np.pi * cadence * t + ph[:, [i]]) * (1, 0.7, 0.5)[i] for i in range(3)]
    x = np.stack(axes, 1) + np.array([0, 0, 1.0])[None, :, None] * r.normal(1, 0.3, (n, 1, 1)) + r.normal(0, 0.3, (n, 3, length))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


def evaluate(model, loader, loss_fn):
    model.eval()
    loss = right = n = 0
    with torch.inference_mode():
        for x, y in loader:
            p = model(x)
            loss += loss_fn(p, y).item() * len(y)
            right += (p.argmax(1) == y).sum().item()
            n += len(y)
    return loss / n, right / n


def main(epochs=10, batch=64):
    train = DataLoader(windows(64 * 40 + 3, 1), batch_size=batch, shuffle=True)
    val = DataLoader(windows(640, 2), batch_size=128)
    model = ActivityNet()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        t0 = time.perf_counter()
        model.train()
        loss_sum = right = n = 0
        for x, y in train:
            p = model(x)
            loss = loss_fn(p, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            loss_sum += loss.item() * len(y)
            right += (p.argmax(1) == y).sum().item()
            n += len(y)
        v_loss, v_acc = evaluate(model, val, loss_fn)
        dt = time.perf_counter() - t0
        print(f"Epoch {epoch + 1}/{epochs}")
        print(f"{len(train)}/{len(train)} [==============================] - {dt:.0f}s {1000 * dt / len(train):.0f}ms/step"
              f" - loss: {loss_sum / n:.4f} - accuracy: {right / n:.4f} - val_loss: {v_loss:.4f} - val_accuracy: {v_acc:.4f}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
