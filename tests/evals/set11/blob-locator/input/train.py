"""Predict the centre of a faint spot in a noisy frame; weights are averaged for deployment."""
import argparse
import json

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def frames(n, seed, size=14):
    g = torch.Generator().manual_seed(seed)
    centre = torch.rand(n, 2, generator=g) * (size - 5) + 2
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    d2 = (yy - centre[:, 0, None, None]) ** 2 + (xx - centre[:, 1, None, None]) ** 2
    image = torch.exp(-d2 / 3.0) + 0.45 * torch.randn(n, size, size, generator=g)
    return image.unsqueeze(1), (centre - size / 2) / (size / 2)


def build_model(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.GroupNorm(4, width), nn.SiLU(),
        nn.Conv2d(width, width, 3, stride=2, padding=1), nn.GroupNorm(4, width), nn.SiLU(),
        nn.Flatten(), nn.Linear(width * 49, 64), nn.SiLU(), nn.Linear(64, 2), nn.Tanh(),
    )


class WeightAverage:
    """Exponential moving average of the weights, evaluated next to the raw model."""

    def __init__(self, model, width, decay):
        self.decay = decay
        self.module = build_model(width).eval()
        self.module.load_state_dict(model.state_dict(), strict=True, assign=True)
        self.module.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for avg, cur in zip(self.module.state_dict().values(), model.state_dict().values()):
            avg.lerp_(cur, 1.0 - self.decay)


@torch.no_grad()
def rmse(model, x, y):
    was = model.training
    model.eval()
    err = F.mse_loss(model(x), y).sqrt().item()
    model.train(was)
    return err


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=14)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--lr", type=float, default=0.25)
    p.add_argument("--momentum", type=float, default=0.9)
    p.add_argument("--width", type=int, default=8)
    p.add_argument("--ema", type=float, default=0.99)
    p.add_argument("--train-size", type=int, default=1200)
    p.add_argument("--seed", type=int, default=21)
    args = p.parse_args()

    set_seed(args.seed)
    acc = Accelerator(cpu=True)
    x, y = frames(args.train_size, seed=1)
    vx, vy = frames(600, seed=2)
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch, shuffle=True)

    model = build_model(args.width)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    model, opt, loader = acc.prepare(model, opt, loader)
    average = WeightAverage(acc.unwrap_model(model), args.width, args.ema)
    acc.print(f"{len(loader)} batches per epoch, {sum(p.numel() for p in model.parameters())} parameters, "
              f"average over about {1 / (1 - args.ema):.0f} steps")

    records = []
    for epoch in range(1, args.epochs + 1):
        total = 0.0
        for bx, by in loader:
            loss = F.mse_loss(model(bx), by)
            acc.backward(loss)
            acc.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            average.update(acc.unwrap_model(model))
            total += loss.item()
        raw = rmse(model, vx, vy)
        avg = rmse(average.module, vx, vy)
        records.append({"epoch": epoch, "train_mse": total / len(loader), "valid_raw": raw, "valid_avg": avg})
        acc.print(f"epoch {epoch:2d}  train mse {total / len(loader):.4f}  "
                  f"valid rmse raw {raw:.5f}  averaged {avg:.5f}")
    with open("metrics.jsonl", "w") as fh:
        fh.writelines(json.dumps(r) + "\n" for r in records)


if __name__ == "__main__":
    main()
