"""Fine-tunes a classifier with class weights: a Trainer whose loss is its own."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from datasets import load_dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    set_seed,
)


@dataclass
class Options:
    model: str = "distilbert-base-uncased"
    labels: int = 4
    length: int = 128
    rate: float = 2e-5


class WeightedTrainer(Trainer):
    def __init__(self, *args, class_weights=None, temperature=2.0, teacher=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.class_weights = class_weights
        self.temperature = temperature
        self.teacher = teacher

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weights = self.class_weights.to(outputs.logits.device)
        loss = F.cross_entropy(outputs.logits, labels, weight=weights)
        if self.teacher is not None:
            with torch.no_grad():
                wanted = self.teacher(**inputs).logits
            t = self.temperature
            soft = F.kl_div(
                F.log_softmax(outputs.logits / t, dim=-1), F.softmax(wanted / t, dim=-1), reduction="batchmean"
            )
            loss = loss + t * t * soft
        return (loss, outputs) if return_outputs else loss


def metrics(prediction):
    logits, labels = prediction
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="runs/weighted")
    parser.add_argument("--teacher", default="bert-large-uncased")
    options, cli = Options(), parser.parse_args()
    set_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    data = load_dataset("ag_news")
    data = data.map(lambda row: tokenizer(row["text"], truncation=True, max_length=options.length), batched=True)
    model = AutoModelForSequenceClassification.from_pretrained(options.model, num_labels=options.labels)
    counts = np.bincount(data["train"]["label"], minlength=options.labels)
    weights = torch.tensor(counts.sum() / (options.labels * np.maximum(counts, 1)), dtype=torch.float32)
    arguments = TrainingArguments(
        output_dir=cli.out,
        learning_rate=options.rate,
        per_device_train_batch_size=32,
        num_train_epochs=3,
        warmup_ratio=0.06,
        eval_strategy="epoch",
    )
    trainer = WeightedTrainer(
        model=model,
        args=arguments,
        train_dataset=data["train"],
        eval_dataset=data["test"],
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=metrics,
        class_weights=weights,
        teacher=AutoModelForSequenceClassification.from_pretrained(cli.teacher).eval(),
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
