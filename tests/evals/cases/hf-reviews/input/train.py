"""Sentiment fine-tuning script, BERT-tiny from a config; grad accumulation, linear decay with warmup."""
import json
import random
import sys

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

CONFIG = {"epochs": 5, "micro_batch": 16, "accum": 2, "lr": 2e-3, "warmup_ratio": 0.06, "max_len": 16, "weight_decay": 0.01}
POS, NEG, NOT = range(10, 25), range(25, 40), 5


def review(rng):
    """stars = sum of sentiment words; a 'not' flips the word behind it"""
    n = rng.randint(9, CONFIG["max_len"] - 1)
    ids = [rng.randint(40, 199) for _ in range(n)]
    score = 0
    for p in rng.sample(range(1, n), rng.choice([1, 2, 3])):
        s = rng.choice([1, -1])
        ids[p] = rng.choice(POS if s > 0 else NEG)
        if rng.random() < 0.1:
            ids[p - 1] = NOT
    for p, t in enumerate(ids):
        s = 1 if t in POS else -1 if t in NEG else 0
        score += -s if p and ids[p - 1] == NOT else s
    return [1] + ids, 0 if score < 0 else 1 if score == 0 else 2


def collate(rows):
    width = max(len(r[0]) for r in rows)
    ids = torch.tensor([r[0] + [0] * (width - len(r[0])) for r in rows])
    return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.tensor([r[1] for r in rows])}


def make_optimizer(model, cfg):
    plain = [p for n, p in model.named_parameters() if "LayerNorm" in n or n.endswith("bias")]
    decay = [p for n, p in model.named_parameters() if not ("LayerNorm" in n or n.endswith("bias"))]
    return torch.optim.AdamW([{"params": decay, "weight_decay": cfg["weight_decay"]}, {"params": plain, "weight_decay": 0.0}], lr=cfg["lr"])


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hit = n = loss = 0
    for b in loader:
        out = model(**b)
        loss += out.loss.item() * len(b["labels"])
        hit += (out.logits.argmax(-1) == b["labels"]).sum().item()
        n += len(b["labels"])
    model.train()
    return loss / n, hit / n


def main():
    cfg = CONFIG
    torch.manual_seed(1)
    rng = random.Random(1)
    train = [review(rng) for _ in range(2000)]
    dev = [review(rng) for _ in range(400)]
    train_loader = DataLoader(train, batch_size=cfg["micro_batch"], shuffle=True, collate_fn=collate)
    dev_loader = DataLoader(dev, batch_size=100, collate_fn=collate)
    model = BertForSequenceClassification(BertConfig(vocab_size=200, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
                                                     max_position_embeddings=32, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.08))
    optimizer = make_optimizer(model, cfg)
    updates = len(train_loader) // cfg["accum"]
    scheduler = get_linear_schedule_with_warmup(optimizer, int(cfg["warmup_ratio"] * updates), updates)

    print(json.dumps({"event": "start", **cfg, "train": len(train), "dev": len(dev)}))
    model.train()
    for epoch in range(cfg["epochs"]):
        running = 0.0
        for i, b in enumerate(train_loader, 1):
            loss = model(**b).loss
            (loss / cfg["accum"]).backward()
            running += loss.item()
            if i % cfg["accum"] == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        dev_loss, dev_acc = evaluate(model, dev_loader)
        print(json.dumps({"event": "epoch", "epoch": epoch + 1, "train_loss": round(running / len(train_loader), 4),
                          "dev_loss": round(dev_loss, 4), "dev_acc": round(dev_acc, 4)}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
