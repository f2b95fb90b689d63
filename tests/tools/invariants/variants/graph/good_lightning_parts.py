import lightning as L
import torch
from torch import nn
from torch.nn import functional as F


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.low, self.high = nn.Linear(64, 32), nn.Linear(64, 32)

    def forward(self, sound):
        return self.low(sound).tanh(), self.high(sound).tanh()


class Listener(L.LightningModule):
    def __init__(self, thaw=5):
        super().__init__()
        self.thaw = thaw
        self.ears, self.fixed, self.mouth = Half(), Half(), nn.Linear(64, 10)
        self.fixed.requires_grad_(False)

    def training_step(self, batch, index):
        sound, word = batch
        with torch.set_grad_enabled(self.current_epoch >= self.thaw):
            low, _ = self.ears(sound)
        with torch.no_grad():
            _, high = self.fixed(sound)
        return {"loss": F.cross_entropy(self.mouth(torch.cat([low, high], -1)), word)}

    def configure_optimizers(self):
        return torch.optim.Adam([{"params": self.ears.parameters(), "lr": 1e-4},
                                 {"params": self.fixed.parameters()}, {"params": self.mouth.parameters()}], lr=1e-3)
