"""List of cut losses."""
import torch, lightning as L


class Lit(L.LightningModule):

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.out = []

    def training_step(self, batch, idx):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.out.append(loss.detach())
        return loss

    def on_train_epoch_end(self):
        self.log('l', torch.stack(self.out).mean())
        self.out.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
