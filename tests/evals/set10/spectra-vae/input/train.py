import logging
import math
import warnings

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)

BINS = 64


def harmonic_spectra(n, gen):
    """log spectra of a plucked string: pitch, decay of the partials, level"""
    f0 = 4 + 8 * torch.rand(n, 1, generator=gen)
    slope = 0.15 + 0.5 * torch.rand(n, 1, generator=gen)
    level = torch.randn(n, 1, generator=gen) * 0.3
    k = torch.arange(BINS).float().unsqueeze(0)
    x = torch.zeros(n, BINS)
    for h in range(1, 9):
        x = x + torch.exp(-slope * h) * torch.exp(-0.5 * ((k - h * f0) / 1.2) ** 2)
    x = torch.log(x + 0.02) / 2 + 1 + level
    return x + 0.1 * torch.randn(n, BINS, generator=gen)


class SpectraVAE(pl.LightningModule):
    def __init__(self, latent=8, hidden=128, lr=3e-3, warmup_epochs=10):
        super().__init__()
        self.save_hyperparameters()
        self.enc = nn.Sequential(nn.Linear(BINS, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, BINS))
        self.log_sigma = nn.Parameter(torch.zeros(()))

    @property
    def beta(self):
        # KL weight: 0 in the first epoch, 1 after the warm-up
        return min(1.0, self.current_epoch / self.hparams.warmup_epochs)

    def elbo_terms(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        rec = self.dec(z)
        nll = (0.5 * ((x - rec) / self.log_sigma.exp()) ** 2 + self.log_sigma + 0.5 * math.log(2 * math.pi)).sum(-1)
        kl = 0.5 * (mu ** 2 + logvar.exp() - 1 - logvar)
        return nll.mean(), kl.mean(0), (x - rec).pow(2).mean()

    def training_step(self, batch, _):
        nll, kl, _ = self.elbo_terms(batch[0])
        loss = nll + self.beta * kl.sum()
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        nll, kl, mse = self.elbo_terms(batch[0])
        self.log_dict({"val_objective": nll + self.beta * kl.sum(), "val_nll": nll, "val_kl": kl.sum(), "val_mse": mse,
                       "active": (kl > 0.05).float().sum()})

    def on_validation_epoch_end(self):
        if self.trainer.sanity_checking:
            return
        m = {k: float(v) for k, v in self.trainer.callback_metrics.items()}
        print(f"ep {self.current_epoch:02d} beta {self.beta:.2f} | val objective {m['val_objective']:8.3f} nll {m['val_nll']:8.3f} "
              f"kl {m['val_kl']:7.3f} mse {m['val_mse']:.4f} active dims {m['active']:.0f}/{self.hparams.latent} "
              f"sigma {self.log_sigma.exp().item():.3f}", flush=True)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.MultiStepLR(opt, [20, 24], gamma=0.3)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "epoch"}}


if __name__ == "__main__":
    pl.seed_everything(27, verbose=False)
    gen = torch.Generator().manual_seed(27)
    train, val = harmonic_spectra(4000, gen), harmonic_spectra(1000, gen)
    print(f"train {tuple(train.shape)} val {tuple(val.shape)}, variance {val.var(0).mean():.3f}, noise variance 0.010")
    trainer = pl.Trainer(max_epochs=26, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=50.0)
    trainer.fit(SpectraVAE(), DataLoader(TensorDataset(train), 100, shuffle=True), DataLoader(TensorDataset(val), 500))
