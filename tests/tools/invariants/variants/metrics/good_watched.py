"""Metrics in their direction, negated ones, names that say two things or nothing."""

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from transformers import TrainingArguments

CALLBACKS = [
    ModelCheckpoint(monitor="val_iou", mode="max"), EarlyStopping("val_wer"), ModelCheckpoint(monitor="neg_accuracy"),
    ModelCheckpoint(monitor="val_acc", save_top_k=-1), EarlyStopping("score", mode="min"),
]
OPTIONS = TrainingArguments("out", load_best_model_at_end=True, metric_for_best_model="eval_loss")
MORE = TrainingArguments("out", load_best_model_at_end=True, metric_for_best_model="rmse", greater_is_better=False)
trainer = pl.Trainer(callbacks=CALLBACKS)
net = nn.Linear(4, 3)
optimizer = torch.optim.Adam(net.parameters())
slower, other = ReduceLROnPlateau(optimizer, mode="max"), ReduceLROnPlateau(optimizer)
for x, y in [(torch.randn(8, 4), torch.zeros(8).long())]:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    accuracy = (net(x).argmax(1) == y).float().mean().item()
    inverted = 1 - accuracy
    slower.step(accuracy)
    other.step(inverted)
