"""Adapt the ticket router to the new product names (accelerate)."""
import json
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from model import Router, extend_vocabulary

MAX_WORDS = 14


def encode(rows, vocab):
    ids = torch.zeros(len(rows), MAX_WORDS, dtype=torch.long)
    for j, r in enumerate(rows):
        words = [vocab[w] for w in r["text"].split() if w in vocab][:MAX_WORDS]
        ids[j, :len(words)] = torch.tensor(words)
    return ids


def main():
    set_seed(10)
    acc = Accelerator(cpu=True)
    base = json.loads(Path("base/vocab.json").read_text())
    queues = json.loads(Path("base/queues.json").read_text())
    tickets = {k: [json.loads(x) for x in Path(f"tickets/{k}.jsonl").read_text().splitlines()] for k in ("train", "test")}

    model = Router(len(base) + 1, len(queues))
    model.load_state_dict(torch.load("base/router.pt", weights_only=True))
    optimizer = torch.optim.AdamW(
        [{"params": model.words.parameters(), "lr": 1e-2, "weight_decay": 0.0},
         {"params": [*model.gate.parameters(), *model.body.parameters()], "lr": 3e-3}])

    vocab = {w: i + 1 for i, w in enumerate(base)}
    new = sorted({w for r in tickets["train"] for w in r["text"].split()} - set(vocab))
    for w in new:
        vocab[w] = len(vocab) + 1
    extend_vocabulary(model, len(new))
    acc.print(f"{len(base)} known words, {len(new)} new: {' '.join(new[:6])} ...")

    data = {k: TensorDataset(encode(v, vocab), torch.tensor([queues.index(r["queue"]) for r in v])) for k, v in tickets.items()}
    loader = DataLoader(data["train"], batch_size=32, shuffle=True)
    model, optimizer, loader = acc.prepare(model, optimizer, loader)
    has_new = torch.tensor([any(w in new for w in r["text"].split()) for r in tickets["test"]])
    x, y = data["test"].tensors
    for epoch in range(10):
        model.train()
        total = 0.0
        for ids, q in loader:
            loss = F.cross_entropy(model(ids), q)
            optimizer.zero_grad()
            acc.backward(loss)
            optimizer.step()
            total += loss.item() * len(q)
        model.eval()
        with torch.no_grad():
            hit = (model(x).argmax(-1) == y).float()
        acc.print(f"epoch {epoch}  loss {total / len(data['train']):.4f}  accuracy with product name {hit[has_new].mean():.3f}  "
                  f"without {hit[~has_new].mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
