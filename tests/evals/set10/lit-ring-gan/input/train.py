import logging
import math
import warnings

import lightning as L
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

MODES, RADIUS, SIGMA, ZDIM = 8, 2.0, 0.15, 8


def ring(n, gen):
    k = torch.randint(MODES, (n,), generator=gen)
    a = 2 * math.pi * k / MODES
    return torch.stack([a.cos(), a.sin()], 1) * RADIUS + SIGMA * torch.randn(n, 2, generator=gen)


def mlp(i, o, act):
    return nn.Sequential(nn.Linear(i, 64), act(), nn.Linear(64, 64), act(), nn.Linear(64, o))


class RingGAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.G = mlp(ZDIM, 2, nn.ReLU)
        self.D = mlp(2, 1, lambda: nn.LeakyReLU(0.2))
        self.stats = []

    def configure_optimizers(self):
        g = torch.optim.Adam(self.G.parameters(), lr=1e-3, betas=(0.5, 0.99))
        d = torch.optim.Adam(self.D.parameters(), lr=1e-3, betas=(0.5, 0.99))
        return g, d

    def training_step(self, batch, _):
        real = batch[0]
        opt_g, opt_d = self.optimizers()
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)

        fake = self.G(torch.randn(len(real), ZDIM))
        loss_d = bce(self.D(real), ones) + bce(self.D(fake.detach()), zeros)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()

        self.D.requires_grad_(False)
        loss_g = bce(self.D(fake), ones)
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        self.D.requires_grad_(True)
        self.stats.append((loss_g.item(), loss_d.item()))

    def on_train_epoch_end(self):
        if (self.current_epoch + 1) % 5 == 0 or self.current_epoch == 0:
            with torch.no_grad():
                s = self.G(torch.randn(2000, ZDIM))
            a = torch.arange(MODES) * 2 * math.pi / MODES
            d, k = torch.cdist(s, torch.stack([a.cos(), a.sin()], 1) * RADIUS).min(1)
            good = d < 4 * SIGMA
            share = torch.bincount(k[good], minlength=MODES) / 2000
            g, dd = (sum(v) / len(v) for v in zip(*self.stats))
            print(f"epoch {self.current_epoch + 1:3d}  loss_G {g:.3f}  loss_D {dd:.3f}  on a mode {good.float().mean():.2f}  "
                  f"modes hit {(share > 0.03).sum().item()}/{MODES}", flush=True)
        self.stats.clear()


if __name__ == "__main__":
    L.seed_everything(5, verbose=False)
    data = ring(5120, torch.Generator().manual_seed(0))
    trainer = L.Trainer(max_epochs=50, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(RingGAN(), DataLoader(TensorDataset(data), batch_size=256, shuffle=True))
