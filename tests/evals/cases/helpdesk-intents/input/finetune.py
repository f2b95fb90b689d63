"""Intent classifier for the helpdesk inbox (small BERT trained from scratch on our tickets)."""
import json
import sys
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

MAX_LEN = 20


def read_jsonl(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


class Vocab:
    def __init__(self, rows, min_count=2):
        counts = {}
        for r in rows:
            for w in r["text"].split():
                counts[w] = counts.get(w, 0) + 1
        words = sorted(w for w, c in counts.items() if c >= min_count)
        self.index = {w: i + 3 for i, w in enumerate(words)}  # 0 pad, 1 unk, 2 cls

    def __len__(self):
        return len(self.index) + 3

    def encode(self, text):
        ids = [2] + [self.index.get(w, 1) for w in text.split()][: MAX_LEN - 1]
        mask = [1] * len(ids) + [0] * (MAX_LEN - len(ids))
        return ids + [0] * (MAX_LEN - len(ids)), mask


class TicketDataset(Dataset):
    def __init__(self, rows, vocab):
        self.names = sorted({r["intent"] for r in rows})
        to_id = {n: i for i, n in enumerate(self.names)}
        self.items = []
        for r in rows:
            ids, mask = vocab.encode(r["text"])
            self.items.append({"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "labels": to_id[r["intent"]]})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def metrics(pred):
    guess = pred.predictions.argmax(-1)
    acc = float((guess == pred.label_ids).mean())
    f1 = []
    for c in np.unique(pred.label_ids):
        tp = ((guess == c) & (pred.label_ids == c)).sum()
        f1.append(2 * tp / max(1, (guess == c).sum() + (pred.label_ids == c).sum()))
    return {"accuracy": acc, "macro_f1": float(np.mean(f1))}


def main():
    set_seed(11)
    train_rows, dev_rows = read_jsonl("data/train.jsonl"), read_jsonl("data/dev.jsonl")
    vocab = Vocab(train_rows)
    train, dev = TicketDataset(train_rows, vocab), TicketDataset(dev_rows, vocab)
    print(f"{len(train)} train / {len(dev)} dev tickets, vocab {len(vocab)}, intents: {len(train.names)}")
    unk = np.mean([(d["input_ids"] == 1).float().sum().item() for d in dev.items])
    print(f"mean unknown words per dev ticket: {unk:.2f}")

    cfg = BertConfig(vocab_size=len(vocab), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                     intermediate_size=128, max_position_embeddings=MAX_LEN, num_labels=len(train.names),
                     hidden_dropout_prob=0.1)
    model = BertForSequenceClassification(cfg)
    args = TrainingArguments(output_dir="out", num_train_epochs=6, per_device_train_batch_size=32, learning_rate=1e-3,
                             warmup_steps=20, weight_decay=0.01, eval_strategy="epoch", save_strategy="no",
                             logging_steps=20, report_to=[], disable_tqdm=True, use_cpu=True)
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=dev, compute_metrics=metrics)
    trainer.train()
    trainer.state.save_to_json("trainer_state.json")
    print("final", trainer.evaluate())


if __name__ == "__main__":
    sys.exit(main())
