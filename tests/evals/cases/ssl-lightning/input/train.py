import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def spectra(n, seed, classes=8, bins=64):
    g = torch.Generator().manual_seed(123)
    lines = torch.rand(classes, 4, generator=g) * bins
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    pos = lines[y] + 3.0 * torch.randn(n, 4, generator=g)
    grid = torch.arange(bins).float()
    x = torch.exp(-(grid[None, None] - pos[..., None]).pow(2) / 6).sum(1)
    return x + 0.05 * torch.randn(n, bins, generator=g), y


def view(x):
    """random gain, baseline tilt, masked band and noise"""
    n, bins = x.shape
    x = x * (0.6 + 0.8 * torch.rand(n, 1)) + torch.randn(n, 1) * 0.2 * torch.linspace(-1, 1, bins)
    start = torch.randint(0, bins - 10, (n, 1))
    grid = torch.arange(bins)[None]
    return x.masked_fill((grid >= start) & (grid < start + 10), 0.0) + 0.1 * torch.randn_like(x)


class SimSiam(L.LightningModule):
    def __init__(self, dim=64, accumulate=2, lr=0.06, epochs=20):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, dim), nn.BatchNorm1d(dim), nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(dim, dim, bias=False), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, dim, bias=False), nn.BatchNorm1d(dim, affine=False))
        self.predictor = nn.Sequential(nn.Linear(dim, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, dim))
        self.probe = nn.Linear(dim, 8)

    def pair_loss(self, p, z):
        return -F.cosine_similarity(p, z.detach(), dim=1).mean()

    def training_step(self, batch, batch_idx):
        x, y = batch
        ssl_opt, probe_opt = self.optimizers()
        h1, h2 = self.encoder(view(x)), self.encoder(view(x))
        z1, z2 = self.projector(h1), self.projector(h2)
        p1, p2 = self.predictor(z1), self.predictor(z2)
        ssl = 0.5 * (self.pair_loss(p1, z2) + self.pair_loss(p2, z1))
        probe = F.cross_entropy(self.probe(h1.detach()), y)
        self.manual_backward((ssl + probe) / self.hparams.accumulate)
        if (batch_idx + 1) % self.hparams.accumulate == 0:
            for opt in (ssl_opt, probe_opt):
                opt.step()
                opt.zero_grad()
        spread = F.normalize(z1.detach(), dim=1).std(0).mean() * z1.shape[1] ** 0.5
        self.log_dict({"ssl": ssl, "probe": probe, "spread": spread}, on_step=False, on_epoch=True, batch_size=len(x))

    def on_train_epoch_end(self):
        self.lr_schedulers().step()

    def validation_step(self, batch, _):
        x, y = batch
        acc = (self.probe(self.encoder(x)).argmax(1) == y).float().mean()
        self.log("acc", acc, batch_size=len(x))


    def configure_optimizers(self):
        body = [*self.encoder.parameters(), *self.projector.parameters()]
        ssl = torch.optim.SGD([{"params": body}, {"params": self.predictor.parameters()}], lr=self.hparams.lr, momentum=0.9, weight_decay=5e-4)
        probe = torch.optim.Adam(self.probe.parameters(), lr=1e-2)
        # cosine for the body, constant learning rate for the predictor (as in the paper)
        cos = torch.optim.lr_scheduler.LambdaLR(ssl, [lambda e: 0.5 * (1 + torch.cos(torch.tensor(e / self.hparams.epochs * torch.pi)).item()), lambda e: 1.0])
        return [ssl, probe], [cos]


class Line(L.Callback):
    def on_train_epoch_end(self, trainer, module):
        m = {k: float(v) for k, v in trainer.callback_metrics.items()}
        lrs = [g["lr"] for g in trainer.optimizers[0].param_groups]
        print(f"epoch {trainer.current_epoch:02d} | ssl_loss {m['ssl']:+.4f} | z_std*sqrt(d) {m['spread']:.3f} | probe_loss {m['probe']:.3f} | "
              f"val_acc {m['acc']:.3f} | lr body {lrs[0]:.4f} pred {lrs[1]:.4f}", flush=True)


def main():
    L.seed_everything(2, verbose=False)
    model = SimSiam()
    train = DataLoader(TensorDataset(*spectra(2048, 0)), batch_size=128, shuffle=True, drop_last=True)
    val = DataLoader(TensorDataset(*spectra(512, 1)), batch_size=512)
    trainer = L.Trainer(max_epochs=model.hparams.epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0, callbacks=[Line()])
    trainer.fit(model, train, val)


if __name__ == "__main__":
    main()
