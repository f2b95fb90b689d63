"""Denoising network for seismic traces; noise is drawn afresh on every pass."""
import random
import torch
from torch import nn

CFG = dict(seed=77, epochs=60, lr=2e-3, batch=20, n_train=100, n_val=200, length=64, sigma=0.7)


def traces(n, length):
    t = torch.arange(length).float()
    out = torch.zeros(n, length)
    for _ in range(3):
        centre = torch.rand(n, 1) * length
        f = 0.08 + 0.06 * torch.rand(n, 1)
        arg = (torch.pi * f * (t - centre)) ** 2
        out += torch.randn(n, 1) * (1 - 2 * arg) * torch.exp(-arg)      # Ricker wavelets
    return out


class Denoiser(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(length, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, length))

    def forward(self, x):
        return self.net(x)


def seed_all(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def one_epoch(model, opt, clean):
    seed_all(CFG["seed"])
    total = 0.0
    for idx in torch.randperm(len(clean)).split(CFG["batch"]):
        target = clean[idx]
        noisy = target + CFG["sigma"] * torch.randn_like(target)
        loss = nn.functional.mse_loss(model(noisy), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    return total / len(clean)


@torch.no_grad()
def validate(model, clean, noise):
    return nn.functional.mse_loss(model(clean + noise), clean).item()


def main():
    seed_all(seed=CFG["seed"])
    train, val = traces(CFG["n_train"], CFG["length"]), traces(CFG["n_val"], CFG["length"])
    val_noise = CFG["sigma"] * torch.randn_like(val)
    model = Denoiser(CFG["length"])
    opt = torch.optim.Adam(model.parameters(), lr=CFG["lr"])
    print("config", CFG)
    print(f"identity mse {CFG['sigma'] ** 2:.3f}, zero mse {val.pow(2).mean():.3f}")
    for epoch in range(CFG["epochs"]):
        tr = one_epoch(model, opt, train)
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1:3d}  train {tr:.4f}  val {validate(model, val, val_noise):.4f}")


if __name__ == "__main__":
    main()
