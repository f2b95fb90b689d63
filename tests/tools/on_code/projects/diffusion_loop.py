"""A denoising diffusion model: noise prediction with an EMA of the weights."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

STEPS = 1000


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.time = nn.Embedding(STEPS, width)
        self.into = nn.Conv2d(1, width, 3, padding=1)
        self.mid = nn.Conv2d(width, width, 3, padding=1)
        self.out = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t):
        h = F.silu(self.into(x)) + self.time(t)[:, :, None, None]
        return self.out(F.silu(self.mid(h)))


class Schedule:
    def __init__(self):
        betas = torch.linspace(1e-4, 0.02, STEPS)
        self.alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)

    def noisy(self, x, noise, t):
        kept = self.alphas_cumprod[t].view(-1, 1, 1, 1)
        return kept.sqrt() * x + (1 - kept).sqrt() * noise


@torch.no_grad()
def follow(average, model, decay=0.999):
    for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
        slow.mul_(decay).add_(fast, alpha=1 - decay)


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.rand(2000, 1, 16, 16) * 2 - 1), batch_size=64, shuffle=True)
    model, schedule = Denoiser(), Schedule()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    for epoch in range(20):
        total = 0.0
        for (x,) in loader:
            t = torch.randint(0, STEPS, (len(x),))
            noise = torch.randn_like(x)
            predicted = model(schedule.noisy(x, noise, t), t)
            loss = F.mse_loss(predicted, noise)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            follow(average, model)
            total += loss.item()
        print(epoch, total / len(loader))
    torch.save({"model": model.state_dict(), "ema": average.state_dict()}, "denoiser.pt")


if __name__ == "__main__":
    main()
