"""Route support tickets to queues: a small BERT from scratch with the HF Trainer."""
import json
import logging

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

logging.getLogger("transformers").setLevel(logging.ERROR)
MAX_LEN = 16


class Vocabulary:
    def __init__(self, texts):
        self.ids = {"[PAD]": 0, "[CLS]": 1, "[UNK]": 2}
        for t in texts:
            for w in t.split():
                self.ids.setdefault(w, len(self.ids))

    def encode(self, text):
        ids = [1] + [self.ids.get(w, 2) for w in text.split()][: MAX_LEN - 1]
        pad = MAX_LEN - len(ids)
        return ids + [0] * pad, [1] * len(ids) + [0] * pad


class Tickets(Dataset):
    """One jsonl file of {"text": ..., "queue": ...}."""

    def __init__(self, path, vocab=None):
        with open(path) as f:
            self.rows = [json.loads(line) for line in f]
        self.vocab = vocab or Vocabulary(r["text"] for r in self.rows)
        self.label2id = {}
        for r in self.rows:
            self.label2id.setdefault(r["queue"], len(self.label2id))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, mask = self.vocab.encode(self.rows[i]["text"])
        return {
            "input_ids": torch.tensor(ids),
            "attention_mask": torch.tensor(mask),
            "labels": torch.tensor(self.label2id[self.rows[i]["queue"]]),
        }


def metrics(pred):
    guess = np.argmax(pred.predictions, axis=-1)
    return {"accuracy": float((guess == pred.label_ids).mean())}


class PrintLog(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        keep = {k: round(v, 4) if isinstance(v, float) else v for k, v in logs.items()
                if "runtime" not in k and "per_second" not in k and k != "total_flos"}
        print(f"step {state.global_step:4d} {keep}", flush=True)


def main():
    set_seed(7)
    train = Tickets("train.jsonl")
    valid = Tickets("valid.jsonl", vocab=train.vocab)
    print(f"{len(train)} training and {len(valid)} validation tickets, {len(train.vocab.ids)} words, "
          f"{len(train.label2id)} queues")
    config = BertConfig(
        vocab_size=len(train.vocab.ids),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=MAX_LEN,
        num_labels=len(train.label2id),
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=8,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=2e-3,
        warmup_steps=40,
        lr_scheduler_type="linear",
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=50,
        report_to="none",
        disable_tqdm=True,
        seed=7,
        use_cpu=True,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=train,
        eval_dataset=valid,
        compute_metrics=metrics,
        callbacks=[PrintLog()],
    )
    trainer.remove_callback(__import__("transformers").PrinterCallback)
    trainer.train()


if __name__ == "__main__":
    main()
