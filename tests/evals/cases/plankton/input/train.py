"""Deep tabular net for plankton counts, Lightning, per-layer gradient log."""
import logging
import torch
from torch import nn
import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class DeepNet(pl.LightningModule):
    def __init__(self, depth=10, width=32, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        dims = [12] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in zip(dims, dims[1:]))
        self.act = nn.Sigmoid()
        self.top = nn.Linear(width, 4)

    def forward(self, x):
        for lin in self.layers:
            x = self.act(lin(x))
        return self.top(x)

    def training_step(self, batch, i):
        x, y = batch
        out = self(x)
        ce = nn.functional.cross_entropy(out, y)
        self.log_dict({"ce": ce, "hit": (out.argmax(1) == y).float().mean()}, on_step=False, on_epoch=True)
        return ce

    def on_after_backward(self):
        if self.global_step % 20 == 0:
            norms = {f"gnorm/L{k:02d}": lin.weight.grad.norm() for k, lin in enumerate(self.layers)}
            norms["gnorm/top"] = self.top.weight.grad.norm()
            self.log_dict(norms)

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        gn = [f"{float(m[k]):.1e}" for k in ("gnorm/L00", "gnorm/L03", "gnorm/L06", "gnorm/L09", "gnorm/top")]
        print(f"epoch={self.current_epoch}-ce={float(m['ce']):.4f}-hit={float(m['hit']):.3f} | grad norm L0,3,6,9,top: {' '.join(gn)}")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)


def plankton(n=2000):
    g = torch.Generator().manual_seed(6)
    x = torch.randn(n, 12, generator=g)
    w = torch.randn(12, 4, generator=g)
    return TensorDataset(x, (x @ w + 0.3 * torch.randn(n, 4, generator=g)).argmax(1))


if __name__ == "__main__":
    pl.seed_everything(1, verbose=False)
    trainer = pl.Trainer(max_epochs=10, accelerator="cpu", enable_progress_bar=False, enable_checkpointing=False,
                         enable_model_summary=False, logger=CSVLogger(".", name="lightning_logs"), log_every_n_steps=20)
    trainer.fit(DeepNet(), DataLoader(plankton(), 50, shuffle=True))
