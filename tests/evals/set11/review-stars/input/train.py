"""Star class (low / middle / high) of product reviews, on the encoder of the tone model.

The embeddings and the first two layers stay as they are; the last layer, the pooler and a fresh head are trained.
"""
import csv
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import (AutoModelForSequenceClassification, HfArgumentParser, Trainer, TrainerCallback,
                          TrainingArguments, set_seed)
from transformers.utils import logging as hf_logging

hf_logging.disable_progress_bar()
STARS = ["low", "middle", "high"]


@dataclass
class Settings:
    base: str = field(default="pretrained")
    train_layers: int = field(default=1, metadata={"help": "how many of the top layers to train"})
    dropout: float = field(default=0.3)
    max_len: int = field(default=24)


class Reviews(torch.utils.data.Dataset):
    def __init__(self, path, vocab, max_len):
        with open(path, newline="") as fh:
            rows = list(csv.DictReader(fh))
        self.labels = torch.tensor([STARS.index(r["stars"]) for r in rows])
        self.ids = torch.zeros(len(rows), max_len, dtype=torch.long)
        for i, r in enumerate(rows):
            ids = [vocab["[CLS]"]] + [vocab.get(w, vocab["[UNK]"]) for w in r["review"].split()]
            self.ids[i, :min(len(ids), max_len)] = torch.tensor(ids[:max_len])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": (self.ids[i] > 0).long(), "labels": self.labels[i]}


def freeze(model, train_layers):
    for p in model.bert.embeddings.parameters():
        p.requires_grad_(False)
    for layer in model.bert.encoder.layer[:-train_layers]:
        for p in layer.parameters():
            p.requires_grad_(False)
    free = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"training {free} of {model.num_parameters()} parameters")


def metrics(pred):
    guess = np.argmax(pred.predictions, -1)
    recall = [float((guess[pred.label_ids == k] == k).mean()) for k in range(len(STARS))]
    return {"accuracy": float((guess == pred.label_ids).mean()), "macro_recall": float(np.mean(recall))}


class WeightReport(TrainerCallback):
    """Prints at the end how far each part has moved from the loaded weights."""

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        self.before = {n: p.detach().clone() for n, p in model.named_parameters()}

    def on_train_end(self, args, state, control, model=None, **kwargs):
        moved = {}
        for n, p in model.named_parameters():
            part = ".".join(n.split(".")[:4]) if "layer" in n else ".".join(n.split(".")[:2])
            moved[part] = moved.get(part, 0.0) + (p - self.before[n]).norm().item()
        for part, d in moved.items():
            print(f"  moved {d:8.4f}  {part}")


def main():
    (cfg,) = HfArgumentParser(Settings).parse_args_into_dataclasses()
    set_seed(31)
    with open(f"{cfg.base}/vocab.txt") as fh:
        vocab = {w.strip(): i for i, w in enumerate(fh)}
    train = Reviews("data/train.csv", vocab, cfg.max_len)
    valid = Reviews("data/valid.csv", vocab, cfg.max_len)
    print(f"{len(train)} train, {len(valid)} valid, classes {dict(zip(STARS, train.labels.bincount().tolist()))}")

    model = AutoModelForSequenceClassification.from_pretrained(
        cfg.base, num_labels=len(STARS), hidden_dropout_prob=cfg.dropout, classifier_dropout=cfg.dropout)
    freeze(model, cfg.train_layers)

    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="out", num_train_epochs=4, per_device_train_batch_size=32, per_device_eval_batch_size=200,
            learning_rate=2e-3, lr_scheduler_type="cosine", warmup_steps=20, weight_decay=0.01,
            label_smoothing_factor=0.15, max_grad_norm=1.0, eval_strategy="epoch", logging_steps=20,
            save_strategy="no", report_to=[], seed=31, disable_tqdm=True, use_cpu=True),
        train_dataset=train, eval_dataset=valid, compute_metrics=metrics, callbacks=[WeightReport()])
    trainer.train()


if __name__ == "__main__":
    main()
