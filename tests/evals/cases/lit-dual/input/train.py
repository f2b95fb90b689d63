import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class DomainAdversarial(L.LightningModule):
    """Features that predict the class and hide the measuring device."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.feat = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.cls = nn.Linear(16, 3)
        self.dev = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
        self.rows = []

    def configure_optimizers(self):
        main = torch.optim.Adam([*self.feat.parameters(), *self.cls.parameters()], lr=2e-3)
        return main, torch.optim.Adam(self.dev.parameters(), lr=2e-3)

    def training_step(self, batch, _):
        x, y, d = batch
        main, spy = self.optimizers()
        spy_loss = F.cross_entropy(self.dev(self.feat(x).detach()), d)
        spy.zero_grad()
        self.manual_backward(spy_loss)
        spy.step()
        z = self.feat(x)
        logits = self.cls(z)
        task = F.cross_entropy(logits, y)
        confuse = -F.log_softmax(self.dev(z), 1).mean()
        main.zero_grad()
        self.manual_backward(task + 2.0 * confuse)
        main.step()
        self.rows.append([task.item(), spy_loss.item(), (logits.argmax(1) == y).float().mean().item()])

    def on_train_epoch_end(self):
        t, s, a = torch.tensor(self.rows).mean(0).tolist()
        self.rows.clear()
        print(f"epoch {self.current_epoch:2d} | task {t:.4f} | device loss {s:.4f} | class acc {a:.3f}", flush=True)


def data(n=1200):
    y, d = torch.randint(0, 3, (n,)), torch.randint(0, 2, (n,))
    return TensorDataset(2 * torch.randn(3, 20)[y] + torch.randn(2, 20)[d] + torch.randn(n, 20), y, d)


L.seed_everything(3, verbose=False)
trainer = L.Trainer(max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(DomainAdversarial(), DataLoader(data(), batch_size=40, shuffle=True))
