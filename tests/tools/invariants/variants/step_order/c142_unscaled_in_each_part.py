"""Gradients that are unscaled at each part of a window."""
import torch
from torch import nn
def train(model, loader, accum=4):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = (model(x) - y).abs().mean() / accum
        scaler.scale(loss).backward()
        scaler.unscale_(opt)  # FAULT C142
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if (i + 1) % accum == 0:
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
