import lightning as L
import torch


class WeightAveraging(L.Callback):
    """Keeps an exponential average of the weights and validates with it."""

    def __init__(self, decay=0.99):
        self.decay = decay
        self.shadow = {}
        self.backup = {}

    def on_fit_start(self, trainer, pl_module):
        self.shadow = {n: p.detach().clone() for n, p in pl_module.named_parameters()}

    @torch.no_grad()
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        for name, p in pl_module.named_parameters():
            self.shadow[name].lerp_(p.detach(), 1.0 - self.decay)

    @torch.no_grad()
    def on_validation_start(self, trainer, pl_module):
        self.backup = {n: p.detach() for n, p in pl_module.named_parameters()}
        for name, p in pl_module.named_parameters():
            p.copy_(self.shadow[name])

    @torch.no_grad()
    def on_validation_end(self, trainer, pl_module):
        for name, p in pl_module.named_parameters():
            p.copy_(self.backup[name])
        self.backup = {}
