"""Fields that come through: kept by an argument, made by the collate function, or taken by the model itself."""

import torch
from torch import nn
from transformers import AutoModelForTokenClassification, Trainer, TrainingArguments


class Careful(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        doubtful = inputs.pop("doubtful", None)
        outputs = model(**inputs)
        each = nn.functional.cross_entropy(outputs.logits.transpose(1, 2), inputs["labels"], reduction="none").mean(1)
        loss = each.mean() if doubtful is None else (each * (1 - doubtful)).mean()
        return (loss, outputs) if return_outputs else loss


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)

    def forward(self, x, doubtful=None, labels=None):
        return self.layer(x)


def gather(rows):
    ids = torch.tensor([row["input_ids"] for row in rows])
    batch = {"input_ids": ids, "labels": torch.tensor([row["labels"] for row in rows])}
    batch["doubtful"] = (ids == 0).float().mean(1)
    return batch


def main(train):
    keeps = TrainingArguments("out", remove_unused_columns=False)
    plain = TrainingArguments("out")
    model = AutoModelForTokenClassification.from_pretrained("bert")
    Careful(model=model, args=keeps, train_dataset=train).train()
    Careful(model=model, args=plain, train_dataset=train, data_collator=gather).train()
    Careful(model=Small(), args=plain, train_dataset=train).train()
