"""Route support tickets to a queue with a small BERT trained from scratch.

    python train.py                          settings from config.yaml
    python train.py --learning-rate 1e-3     a flag wins over the file
"""
import argparse
import csv
from collections import Counter
from pathlib import Path

import numpy as np
import torch
import yaml
from transformers import (BertConfig, BertForSequenceClassification, Trainer,
                          TrainingArguments, set_seed)
from transformers.utils import logging as hf_logging

hf_logging.disable_progress_bar()


def build_parser():
    p = argparse.ArgumentParser()
    p.add_argument("--config", default="config.yaml")
    p.add_argument("--data", default="data")
    p.add_argument("--epochs", type=float, default=3)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--learning-rate", type=float, default=5e-5)
    p.add_argument("--weight-decay", type=float, default=0.01)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--max-len", type=int, default=24)
    p.add_argument("--seed", type=int, default=0)
    return p


def parse_args():
    parser = build_parser()
    known, _ = parser.parse_known_args()
    with open(known.config) as fh:
        settings = yaml.safe_load(fh)
    print("settings from", known.config, settings)
    parser.set_defaults(**settings)
    return parser.parse_args()


def read(path):
    with open(path, newline="") as fh:
        rows = list(csv.DictReader(fh))
    return [r["text"].split() for r in rows], [r["queue"] for r in rows]


class Tickets(torch.utils.data.Dataset):
    def __init__(self, texts, queues, vocab, queue_ids, max_len):
        self.ids = torch.zeros(len(texts), max_len, dtype=torch.long)
        for i, words in enumerate(texts):
            ids = [2] + [vocab.get(w, 1) for w in words][:max_len - 1]
            self.ids[i, :len(ids)] = torch.tensor(ids)
        self.labels = torch.tensor([queue_ids[q] for q in queues])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": (self.ids[i] != 0).long(),
                "labels": self.labels[i]}


def metrics(pred):
    return {"accuracy": float((np.argmax(pred.predictions, -1) == pred.label_ids).mean())}


def main():
    args = parse_args()
    set_seed(args.seed)
    texts, queues = read(Path(args.data) / "train.csv")
    vtexts, vqueues = read(Path(args.data) / "valid.csv")
    counts = Counter(w for t in texts for w in t)
    vocab = {w: i + 3 for i, (w, _) in enumerate(counts.most_common())}
    queue_ids = {q: i for i, q in enumerate(sorted(set(queues)))}
    train = Tickets(texts, queues, vocab, queue_ids, args.max_len)
    valid = Tickets(vtexts, vqueues, vocab, queue_ids, args.max_len)
    print(f"{len(train)} train, {len(valid)} valid, {len(vocab) + 3} words, queues {queue_ids}")

    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(vocab) + 3, hidden_size=args.hidden, num_hidden_layers=args.layers,
        num_attention_heads=4, intermediate_size=2 * args.hidden,
        max_position_embeddings=args.max_len, num_labels=len(queue_ids), pad_token_id=0))
    print(f"{model.num_parameters()} parameters")

    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="out", num_train_epochs=args.epochs, learning_rate=args.learning_rate,
            per_device_train_batch_size=args.batch_size, per_device_eval_batch_size=100,
            weight_decay=args.weight_decay, lr_scheduler_type="linear", warmup_steps=10,
            eval_strategy="epoch", logging_steps=25, save_strategy="no", report_to=[],
            seed=args.seed, disable_tqdm=True, use_cpu=True),
        train_dataset=train, eval_dataset=valid, compute_metrics=metrics)
    trainer.train()
    trainer.state.save_to_json("trainer_state.json")
    print("final", trainer.evaluate())


if __name__ == "__main__":
    main()
