"""Strain field surrogate (3-D U-Net style), needs one 24 GB card.  python train.py --device cuda"""
import argparse
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

GRID = 16


class Surrogate(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.c1, self.c2 = nn.Conv3d(2, ch, 3, padding=1), nn.Conv3d(ch, ch, 3, padding=1)
        self.out = nn.Conv3d(ch, 6, 1)

    def forward(self, x):
        h = F.silu(self.c1(x))
        return self.out(h + F.silu(self.c2(h)))


def volume_batches(n, bs, seed, device):
    g = torch.Generator().manual_seed(seed)
    k = torch.randn(6, 2, 3, 3, 3, generator=g) / 7
    for _ in range(n):
        x = torch.randn(bs, 2, GRID, GRID, GRID, generator=g)
        yield x.to(device), torch.tanh(F.conv3d(x, k, padding=1)).to(device)


def evaluate(model, device, n=12):
    model.eval()
    preds, trues = [], []
    for x, y in volume_batches(n, 4, 77, device):
        preds.append(model(x))
        trues.append(y)
    rel = (torch.cat(preds) - torch.cat(trues)).norm() / torch.cat(trues).norm()
    print(f"  eval: {len(preds)} batches, {preds[0].dtype}, requires_grad={preds[0].requires_grad}", flush=True)
    model.train()
    return rel.item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--device", default="cpu")
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--batches", type=int, default=20)
    args = ap.parse_args()
    torch.manual_seed(0)
    model = Surrogate().to(args.device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        t = time.time()
        for i, (x, y) in enumerate(volume_batches(args.batches, 4, epoch, args.device)):
            loss = F.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i % 5 == 0:
                print(f"ep {epoch} | it {i} | mse {loss.item():.5f} | {time.time() - t:.1f} s", flush=True)
        print(f"ep {epoch} | rel. error {evaluate(model, args.device):.4f}", flush=True)


if __name__ == "__main__":
    main()
