"""An unknown network under Lightning: what training_step returns is sent backward, and a list keeps all of it."""
import torch
import lightning as L


class Lit(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.train_losses = []

    def training_step(self, batch, idx):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.train_losses.append(loss)  # FAULT C103
        return loss

    def on_train_epoch_end(self):
        self.log("epoch_loss", torch.stack(self.train_losses).mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.net.parameters())
