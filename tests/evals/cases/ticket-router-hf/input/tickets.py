import random

import torch

ROUTES = ["billing", "login", "shipping", "refund"]
CUES = {
    "billing": ["invoice", "charged", "card", "amount"],
    "login": ["password", "locked", "code", "account"],
    "shipping": ["parcel", "courier", "late", "address"],
    "refund": ["return", "money", "broken", "exchange"],
}
FILLER = ["please", "hello", "my", "the", "was", "not", "why", "today", "again", "order", "help", "still", "is", "it"]
VOCAB = ["[PAD]", "[CLS]", "[UNK]"] + FILLER + [w for r in ROUTES for w in CUES[r]]
INDEX = {w: i for i, w in enumerate(VOCAB)}


def ticket(rng):
    k = rng.randrange(len(ROUTES))
    words = [rng.choice(FILLER) for _ in range(rng.randint(6, 14))]
    for _ in range(2):
        words.insert(rng.randrange(len(words)), rng.choice(CUES[ROUTES[k]]))
    if rng.random() < 0.3:
        other = rng.choice([r for r in ROUTES if r != ROUTES[k]])
        words.insert(rng.randrange(len(words)), rng.choice(CUES[other]))
    return [INDEX["[CLS]"]] + [INDEX[w] for w in words], k


class Tickets(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = [ticket(rng) for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, k = self.rows[i]
        return {"input_ids": ids, "labels": k}


def collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    ids = torch.full((len(rows), width), INDEX["[PAD]"])
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, r in enumerate(rows):
        ids[i, : len(r["input_ids"])] = torch.tensor(r["input_ids"])
        mask[i, : len(r["input_ids"])] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([r["labels"] for r in rows])}
