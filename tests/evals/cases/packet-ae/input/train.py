"""Anomaly auto-encoder for packet features; fp16 autocast with gradient clipping per loss part."""
from dataclasses import dataclass
import time
import torch
import torch.nn as nn


@dataclass
class Hp:
    features: int = 30
    code: int = 5
    lr: float = 1e-3
    batch: int = 64
    iters: int = 200
    clip_enc: float = 1.0
    clip_dec: float = 5.0


class PacketAE(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(hp.features, 64), nn.ELU(), nn.Linear(64, hp.code))
        self.decoder = nn.Sequential(nn.Linear(hp.code, 64), nn.ELU(), nn.Linear(64, hp.features))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Stream:
    def __init__(self, hp, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.basis = torch.randn(hp.code, hp.features, generator=self.g)
        self.hp = hp

    def next(self):
        z = torch.randn(self.hp.batch, self.hp.code, generator=self.g)
        return torch.tanh(z @ self.basis) + 0.05 * torch.randn(self.hp.batch, self.hp.features, generator=self.g)


class Runner:
    def __init__(self, hp):
        self.hp, self.model, self.stream = hp, PacketAE(hp), Stream(hp)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=hp.lr)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 12)

    def clip(self, module, limit):
        self.scaler.unscale_(self.opt)
        return nn.utils.clip_grad_norm_(module.parameters(), limit)

    def one_iter(self):
        x = self.stream.next()
        with torch.autocast("cpu", dtype=torch.float16):
            rec = self.model(x)
        mse = (rec.float() - x).pow(2).mean()
        self.opt.zero_grad(set_to_none=True)
        self.scaler.scale(mse).backward()
        ge = self.clip(self.model.encoder, self.hp.clip_enc)
        gd = self.clip(self.model.decoder, self.hp.clip_dec)
        self.scaler.step(self.opt)
        self.scaler.update()
        return mse.item(), ge.item(), gd.item()

    def run(self):
        t = time.time()
        for i in range(self.hp.iters):
            mse, ge, gd = self.one_iter()
            if i % 20 == 0:
                print(f"{i:04d} mse:{mse:.5f} genc:{ge:.3f} gdec:{gd:.3f} scale:{self.scaler.get_scale():.0f} {time.time() - t:.1f}s")
        print("done")


if __name__ == "__main__":
    torch.manual_seed(0)
    Runner(Hp()).run()
