"""Cement kiln temperature dynamics: a GRU unrolled over a shift, trained with accelerate."""
import argparse
import math
import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

STEPS = 96


def kiln_runs(n, seed):
    """Fuel rate, feed and ring events (sudden heat release) -> temperature."""
    g = torch.Generator().manual_seed(seed)
    u = torch.randn(n, STEPS, 2, generator=g).cumsum(1) * 0.15
    temp = torch.zeros(n)
    out = []
    ring = torch.rand(n, STEPS, generator=g) < 0.0015
    for t in range(STEPS):
        temp = 0.92 * temp + 0.25 * u[:, t, 0] - 0.12 * u[:, t, 1] + 0.1 * torch.tanh(2 * temp) + 0.02 * torch.randn(n, generator=g)
        temp = temp + 8.0 * ring[:, t]
        out.append(temp)
    return torch.cat([u, ring[..., None].float()], 2), torch.stack(out, 1)


class KilnGRU(nn.Module):
    """Free running: only the first temperature is given, then the model feeds on its own output."""

    def __init__(self, hidden=32):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([1.0, 1.0, 1.0]))
        self.scale.requires_grad_(False)  # plant engineering units, fixed
        self.cell = nn.GRUCell(4, hidden)
        self.delta = nn.Linear(hidden + 1, 1)

    def forward(self, u, first):
        y, h, out = first, u.new_zeros(len(u), self.cell.hidden_size), [first]
        for t in range(1, STEPS):
            h = self.cell(torch.cat([u[:, t] * self.scale, y], 1), h)
            y = y + self.delta(torch.cat([h, y], 1))
            out.append(y)
        return torch.cat(out, 1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lr", type=float, default=0.02)
    ap.add_argument("--clip", type=float, default=1.0)
    ap.add_argument("--epochs", type=int, default=8)
    args = ap.parse_args()
    set_seed(5)
    acc = Accelerator(cpu=True)
    u, y = kiln_runs(1024, 1)
    uv, yv = kiln_runs(256, 2)
    loader = DataLoader(TensorDataset(u, y), batch_size=32, shuffle=True)
    model = KilnGRU()
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.SGD(trainable, lr=args.lr, momentum=0.9)
    model, optimizer, loader = acc.prepare(model, optimizer, loader)
    acc.print(f"device {acc.device}, clip at {args.clip}, {sum(p.numel() for g in optimizer.param_groups for p in g['params'])} trainable parameters")
    step = 0
    for epoch in range(args.epochs):
        for ub, yb in loader:
            loss = (model(ub, yb[:, :1]) - yb).pow(2).mean()
            optimizer.zero_grad()
            acc.backward(loss)
            norm = acc.clip_grad_norm_(trainable, args.clip)
            optimizer.step()
            if step % 16 == 0 or step < 6:
                acc.print(f"step={step} loss={loss.item():.4g} grad_norm={float(norm):.3f}")
            step += 1
        with torch.no_grad():
            v = (model(uv, yv[:, :1]) - yv).abs().median().item()
        acc.print(f"epoch={epoch} val_median_abs={v:.4g} (std of target {yv.std():.3f})")
    acc.print("final loss finite:", math.isfinite(loss.item()))


if __name__ == "__main__":
    main()
