"""Discrete codes for short gesture strokes (vector-quantised autoencoder)."""
import json
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HP = dict(codes=48, dim=6, parts=4, hidden=64, beta=0.25, lr=2e-3, batch=64, epochs=16, seed=9)


class Quantiser(nn.Module):
    def __init__(self, codes, dim, beta):
        super().__init__()
        self.beta = beta
        self.book = nn.Embedding(codes, dim)
        nn.init.uniform_(self.book.weight, -1.0 / codes, 1.0 / codes)

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        dist = torch.cdist(flat, self.book.weight)
        idx = dist.argmin(-1)
        q = self.book(idx).view_as(z)
        codebook = F.mse_loss(q.detach(), z)
        commitment = F.mse_loss(z, q.detach())
        out = z + (q - z).detach()
        return out, codebook + self.beta * commitment, idx


class StrokeVQ(nn.Module):
    def __init__(self, length, hp):
        super().__init__()
        h, d, p = hp["hidden"], hp["dim"], hp["parts"]
        self.p, self.d = p, d
        self.enc = nn.Sequential(nn.Linear(length, h), nn.ReLU(), nn.Linear(h, p * d))
        self.vq = Quantiser(hp["codes"], d, hp["beta"])
        self.dec = nn.Sequential(nn.Linear(p * d, h), nn.ReLU(), nn.Linear(h, length))

    def forward(self, x):
        z = self.enc(x).view(-1, self.p, self.d)
        q, loss, idx = self.vq(z)
        return self.dec(q.flatten(1)), loss, idx


def perplexity(counts):
    p = counts / counts.sum()
    return math.exp(-(p * torch.log(p.clamp_min(1e-9))).sum().item())


def main():
    torch.manual_seed(HP["seed"])
    x = torch.from_numpy(np.load("strokes.npy").astype(np.float32))
    x = (x - x.mean()) / x.std()
    train, val = x[:-250], x[-250:]
    model = StrokeVQ(x.shape[1], HP)
    opt = torch.optim.Adam(model.parameters(), lr=HP["lr"])
    log = open("metrics.jsonl", "w")
    for epoch in range(HP["epochs"]):
        model.train()
        rec_sum = vq_sum = 0.0
        counts = torch.zeros(HP["codes"])
        for idx in torch.randperm(len(train)).split(HP["batch"]):
            y, vq, used = model(train[idx])
            rec = F.mse_loss(y, train[idx])
            opt.zero_grad()
            (rec + vq).backward()
            opt.step()
            rec_sum += rec.item() * len(idx)
            vq_sum += vq.item() * len(idx)
            counts += torch.bincount(used, minlength=HP["codes"])
        model.eval()
        with torch.no_grad():
            val_rec = F.mse_loss(model(val)[0], val).item()
        row = dict(epoch=epoch, rec=rec_sum / len(train), vq=vq_sum / len(train), val_rec=val_rec,
                   perplexity=perplexity(counts), used=int((counts > 0).sum()))
        log.write(json.dumps(row) + "\n")
        print("  ".join(f"{k} {v:.4f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), flush=True)
    log.close()


if __name__ == "__main__":
    main()
