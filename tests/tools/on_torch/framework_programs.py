"""Small trainings by Lightning, transformers and Accelerate, which print each loss exactly."""

from __future__ import annotations

HEAD = """
import os, sys, torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
"""

LIGHTNING = HEAD + """
import lightning.pytorch as pl, logging
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)
    def training_step(self, batch, index):
        loss = self.net(batch[0]).pow(2).mean()
        print("loss", loss.item().hex())
        return loss
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 4)), batch_size=8)
pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
           enable_model_summary=False).fit(Lit(), data)
"""

TRANSFORMERS = HEAD + """
from transformers import Trainer, TrainingArguments
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)
    def forward(self, x, labels=None):
        loss = (self.net(x).squeeze(-1) - labels).pow(2).mean()
        print("loss", loss.item().hex())
        return {"loss": loss}
data = [{"x": torch.randn(4), "labels": torch.randn(())} for _ in range(32)]
Trainer(Net(), TrainingArguments(sys.argv[1], max_steps=8, report_to=[], use_cpu=True, save_strategy="no",
        disable_tqdm=True, logging_steps=100), train_dataset=data).train()
"""

ACCELERATE = HEAD + """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 4)), batch_size=4, shuffle=True)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
for (x,) in data:
    with accelerator.accumulate(model):
        loss = model(x).pow(2).mean()
        print("loss", loss.item().hex())
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
"""
