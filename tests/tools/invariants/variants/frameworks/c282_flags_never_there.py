"""A loss that leaves out rows that are flagged; the Trainer leaves out the flags."""

import torch
from torch import nn
from transformers import AutoModelForTokenClassification, Trainer, TrainingArguments


class Careful(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        doubtful = inputs.get("doubtful")  # FAULT C282
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        each = nn.functional.cross_entropy(outputs.logits.transpose(1, 2), inputs["labels"], reduction="none").mean(1)
        loss = each.mean() if doubtful is None else (each * (1 - doubtful)).sum() / (1 - doubtful).sum().clamp(min=1)
        return (loss, outputs) if return_outputs else loss


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)

    def forward(self, x, labels=None):
        return self.layer(x)


class Weighed(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        weight = inputs.pop("weight", None)  # FAULT C282
        out = model(inputs["x"])
        each = nn.functional.cross_entropy(out, inputs["labels"], reduction="none")
        loss = (each if weight is None else each * weight).mean()
        return (loss, out) if return_outputs else loss


def main(train, check):
    torch.manual_seed(0)
    arguments = TrainingArguments("out", num_train_epochs=3)
    Careful(model=AutoModelForTokenClassification.from_pretrained("bert"), args=arguments, train_dataset=train).train()
    Weighed(model=Small(), args=arguments, train_dataset=check).train()
