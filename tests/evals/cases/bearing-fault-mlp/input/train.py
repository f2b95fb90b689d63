"""Bearing fault detection from vibration statistics."""
import time
import torch
from torch import nn

torch.manual_seed(12)
N_FEAT = 60


def vibration(n):
    fault = (torch.rand(n) < 0.5).long()
    x = torch.randn(n, N_FEAT)
    x[:, :6] += 0.45 * (2 * fault[:, None] - 1)
    return x, fault


class Detector(nn.Module):
    def __init__(self, drop):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(N_FEAT, 128), nn.ReLU(), nn.Dropout(drop),
            nn.Linear(128, 128), nn.ReLU(), nn.Dropout(drop),
            nn.Linear(128, 2))

    def forward(self, x):
        return self.layers(x)


class Monitor:
    def __init__(self, model, data):
        self.model, self.data, self.best = model, data, float("inf")

    def check(self):
        self.model.eval()
        with torch.inference_mode():
            out = self.model(self.data[0])
            loss = nn.functional.cross_entropy(out, self.data[1]).item()
            acc = (out.argmax(1) == self.data[1]).float().mean().item()
        if loss >= self.best:
            return loss, acc, ""
        self.best = loss
        self.model.train()
        return loss, acc, "*"


def train(drop=0.7, epochs=40, every=2):
    tr, va = vibration(600), vibration(2000)
    model = Detector(drop)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    monitor = Monitor(model, va)
    start = time.perf_counter()
    print(" epoch   train     val     acc")
    for epoch in range(1, epochs + 1):
        total = 0.0
        for idx in torch.randperm(len(tr[0])).split(50):
            loss = nn.functional.cross_entropy(model(tr[0][idx]), tr[1][idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if epoch % every == 0:
            vl, va_acc, mark = monitor.check()
            print(f"{epoch:6d}  {total / len(tr[0]):.4f}  {vl:.4f}  {va_acc:.4f} {mark}")
    print(f"finished in {time.perf_counter() - start:.1f}s, best val {monitor.best:.4f}")


if __name__ == "__main__":
    train()
