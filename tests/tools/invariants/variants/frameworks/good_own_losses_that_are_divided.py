"""Losses of one's own that read the number of items, call the base class, or belong to a model that takes none."""

from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, Trainer, TrainingArguments


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)

    def forward(self, x, labels=None):
        return self.layer(x)


class ByItems(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        each = nn.functional.cross_entropy(outputs.logits.flatten(0, 1), inputs["labels"].flatten(), reduction="sum")
        loss = each / num_items_in_batch if num_items_in_batch is not None else each / inputs["labels"].numel()
        return (loss, outputs) if return_outputs else loss


class OfBase(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        inputs.pop("ids")
        return super().compute_loss(model, inputs, return_outputs, **kwargs)


class OfSmall(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(inputs["x"])
        loss = nn.functional.cross_entropy(outputs, inputs["labels"])
        return (loss, outputs) if return_outputs else loss


def main(train, check):
    many = TrainingArguments("out", gradient_accumulation_steps=8)
    one = TrainingArguments("out", gradient_accumulation_steps=1)
    ByItems(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=many, train_dataset=train).train()
    OfBase(model=AutoModelForSequenceClassification.from_pretrained("bert"), args=many, train_dataset=train).train()
    OfSmall(model=Small(), args=many, train_dataset=train, eval_dataset=check).train()
    OfSmall(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=one, train_dataset=train).train()
