import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from transformers import TrainingArguments

KEEP = ModelCheckpoint(monitor="val_iou", save_top_k=1)  # FAULT C241
STOP = EarlyStopping("val_wer", mode="max", patience=3)  # FAULT C241
OPTIONS = TrainingArguments("out", load_best_model_at_end=True, metric_for_best_model="eval_rmse")  # FAULT C241
trainer = pl.Trainer(callbacks=[KEEP, STOP])


class Loop:
    def __init__(self, net, batches):
        self.net, self.batches = net, batches
        self.optimizer = torch.optim.Adam(net.parameters())
        self.slower = ReduceLROnPlateau(self.optimizer, factor=0.3)  # FAULT C241

    def accuracy(self):
        return sum((self.net(x).argmax(1) == y).float().mean().item() for x, y in self.batches) / len(self.batches)

    def run(self):
        for _ in range(3):
            for x, y in self.batches:
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.net(x), y).backward()
                self.optimizer.step()
            val_accuracy = self.accuracy()
            self.slower.step(val_accuracy)


Loop(nn.Linear(4, 3), [(torch.randn(8, 4), torch.zeros(8).long())]).run()
