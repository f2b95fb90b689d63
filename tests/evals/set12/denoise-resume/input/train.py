"""Continue training of the accelerometer denoiser from runs/last.pt."""
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

RUN = Path("runs")


@dataclass
class Settings:
    lr: float = 2e-3
    batch: int = 64
    until: int = 900
    log_every: int = 10
    width: int = 96
    window: int = 48
    noise: float = 0.5
    seed: int = 21


class Denoiser(nn.Module):
    def __init__(self, window, width):
        super().__init__()
        self.enc = nn.Linear(window, width)
        self.mid = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.dec = nn.Linear(width, window)

    def forward(self, x):
        h = F.gelu(self.enc(x))
        h = self.norm(h + F.gelu(self.mid(h)))
        return self.dec(h)


def noisy(clean, noise, gen):
    return clean + noise * torch.randn(clean.shape, generator=gen)


def train(cfg, model, opt, clean, val_clean, step, gen):
    val_noisy = noisy(val_clean, cfg.noise, torch.Generator().manual_seed(99))

    def validate():
        model.eval()
        with torch.no_grad():
            return F.mse_loss(model(val_noisy), val_clean).item()

    print(f"step {step:4d}  val mse {validate():.4f}", flush=True)
    running = []
    while step < cfg.until:
        model.train()
        idx = torch.randint(0, len(clean), (cfg.batch,), generator=gen)
        loss = F.mse_loss(model(noisy(clean[idx], cfg.noise, gen)), clean[idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        step += 1
        running.append(loss.item())
        if step % cfg.log_every == 0:
            grad = math.sqrt(sum(p.grad.pow(2).sum().item() for p in model.parameters()))
            print(f"step {step:4d}  train mse {np.mean(running):.4f}  val mse {validate():.4f}  grad norm {grad:.3f}", flush=True)
            running = []
    return step


def save(path, cfg, model, opt, step, gen):
    torch.save({"settings": asdict(cfg), "step": step, "model": model.state_dict(), "optim": opt.state_dict(),
                "generator": gen.get_state()}, path)


def main():
    cfg = Settings()
    torch.manual_seed(cfg.seed)
    clean = torch.from_numpy(np.load("windows.npy").astype(np.float32))
    clean, val_clean = clean[:-200], clean[-200:]
    model = Denoiser(cfg.window, cfg.width)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    gen = torch.Generator().manual_seed(cfg.seed)
    step = 0
    last = RUN / "last.pt"
    if last.exists():
        ckpt = torch.load(last, weights_only=True)
        model.load_state_dict(ckpt["model"])
        opt.load_state_dict(ckpt["optim"])
        gen.set_state(ckpt["generator"])
        step = ckpt["step"]
        print(f"resumed {last} at step {step}, lr {opt.param_groups[0]['lr']}")
    step = train(cfg, model, opt, clean, val_clean, step, gen)
    save(RUN / f"step{step}.pt", cfg, model, opt, step, gen)


if __name__ == "__main__":
    main()
