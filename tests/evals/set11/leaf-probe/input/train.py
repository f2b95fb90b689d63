"""Linear probe of leaf textures on the frozen encoder that was trained on the eight base textures."""
from dataclasses import dataclass, asdict

import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

from encoder import Encoder


@dataclass
class Config:
    data: str = "leaf.npz"
    encoder: str = "encoder.pt"
    epochs: int = 30
    batch_size: int = 50
    lr: float = 1e-2
    weight_decay: float = 1e-4
    n_classes: int = 5
    seed: int = 3


PIXEL_MEAN, PIXEL_STD = 0.475, 0.205


def to_float(images):
    return (torch.from_numpy(images).float() / 255.0 - PIXEL_MEAN) / PIXEL_STD


def load_encoder(path):
    ckpt = torch.load(path, weights_only=True)
    enc = Encoder(**ckpt["arch"])
    enc.load_state_dict(ckpt["state_dict"])
    print(f"encoder {path}: epoch {ckpt['epoch']}, base accuracy {ckpt['valid_acc']:.3f}, "
          f"{sum(p.numel() for p in enc.parameters())} parameters")
    enc.requires_grad_(False)
    return enc.eval()


@torch.no_grad()
def embed(enc, x, batch=200):
    return torch.cat([enc(x[i:i + batch]) for i in range(0, len(x), batch)])


def main():
    cfg = Config()
    print(asdict(cfg))
    torch.manual_seed(cfg.seed)

    with np.load(cfg.data) as z:
        x, y = to_float(z["train_images"]), torch.from_numpy(z["train_labels"])
        vx, vy = to_float(z["valid_images"]), torch.from_numpy(z["valid_labels"])
    print(f"train {tuple(x.shape)} mean {x.mean():.3f} std {x.std():.3f}   valid {tuple(vx.shape)}")

    enc = load_encoder(cfg.encoder)
    feats, vfeats = embed(enc, x), embed(enc, vx)
    print(f"features {tuple(feats.shape)} mean {feats.mean():.3f} std {feats.std():.3f}")

    head = nn.Linear(enc.dim, cfg.n_classes)
    opt = torch.optim.Adam(head.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg.epochs)
    for epoch in range(1, cfg.epochs + 1):
        order = torch.randperm(len(feats))
        loss_sum = 0.0
        for idx in order.split(cfg.batch_size):
            loss = F.cross_entropy(head(feats[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            loss_sum += loss.item() * len(idx)
        sched.step()
        if epoch % 3 == 0 or epoch == 1:
            with torch.no_grad():
                out = head(vfeats)
                acc = (out.argmax(1) == vy).float().mean().item()
                tacc = (head(feats).argmax(1) == y).float().mean().item()
            print(f"epoch {epoch:3d}  loss {loss_sum / len(feats):.4f}  train acc {tacc:.3f}  "
                  f"valid loss {F.cross_entropy(out, vy).item():.4f}  valid acc {acc:.3f}")


if __name__ == "__main__":
    main()
