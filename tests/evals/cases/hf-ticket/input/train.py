import logging
import random

import numpy as np
import torch
from transformers import (BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed)

logging.getLogger("transformers").setLevel(logging.ERROR)

LABELS = ["billing", "shipping", "account", "hardware"]
WORDS = {
    "billing": ["invoice", "refund", "charge", "card", "price"],
    "shipping": ["parcel", "courier", "delay", "address", "tracking"],
    "account": ["password", "login", "email", "profile", "reset"],
    "hardware": ["screen", "battery", "cable", "noise", "heat"],
}
FILLER = [f"w{i}" for i in range(60)]
VOCAB = {w: i + 2 for i, w in enumerate(sorted(sum(WORDS.values(), [])) + FILLER)}
PAD, CLS = 0, 1
MAX_LEN = 20


def encode(words):
    ids = [CLS] + [VOCAB[w] for w in words][: MAX_LEN - 1]
    return {"input_ids": ids + [PAD] * (MAX_LEN - len(ids)),
            "attention_mask": [1] * len(ids) + [0] * (MAX_LEN - len(ids))}


class Tickets(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        rnd = random.Random(seed)
        self.rows = []
        for _ in range(n):
            y = rnd.randrange(len(LABELS))
            words = rnd.choices(WORDS[LABELS[y]], k=rnd.randint(3, 5)) + rnd.choices(FILLER, k=rnd.randint(4, 12))
            rnd.shuffle(words)
            self.rows.append({**encode(words), "labels": y})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {k: torch.tensor(v) for k, v in self.rows[i].items()}


def compute_metrics(p):
    return {"accuracy": float((np.argmax(p.predictions, -1) == p.label_ids).mean())}


def main():
    set_seed(42)
    train, dev = Tickets(1200, 0), Tickets(300, 1)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(VOCAB) + 2, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=MAX_LEN, num_labels=len(LABELS), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=6,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=1e-3,
        weight_decay=0.01,
        lr_scheduler_type="linear",
        warmup_steps=10_000,
        logging_steps=38,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=dev, compute_metrics=compute_metrics)
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
