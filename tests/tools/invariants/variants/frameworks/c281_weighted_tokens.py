"""A Trainer of one's own with a loss by token weights, and eight micro-batches an update."""

import torch
from torch import nn
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):  # FAULT C281
        weights = inputs.pop("weights")
        outputs = model(**inputs)
        each = nn.functional.cross_entropy(outputs.logits[:, :-1].flatten(0, 1), inputs["labels"][:, 1:].flatten(),
                                           reduction="none")
        loss = (each * weights[:, 1:].flatten()).sum() / weights[:, 1:].sum().clamp(min=1e-6)
        return (loss, outputs) if return_outputs else loss


def main(train, check):
    torch.manual_seed(0)
    accumulate = 8
    arguments = TrainingArguments("out", per_device_train_batch_size=2, gradient_accumulation_steps=accumulate,
                                  remove_unused_columns=False)
    Weighted(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=arguments, train_dataset=train,
             eval_dataset=check).train()
