"""Synthetic support tickets; 'outage' is the rare class that must not be missed."""
import numpy as np
import torch
from torch.utils.data import Dataset

TOPICS = {
    "billing": "invoice charge refund card payment vat price plan",
    "account": "login password email reset profile user locked access",
    "howto": "export import guide button page setting report filter",
    "outage": "down error timeout slow unavailable 502 page access",
}
FILLER = "hello please we the our a is since today cannot team thanks and with not working again urgent".split()
LABELS = list(TOPICS)
SHARE = [0.40, 0.32, 0.25, 0.03]
VOCAB = {w: i + 2 for i, w in enumerate(sorted(set(FILLER) | {w for t in TOPICS.values() for w in t.split()}))}
MAX_LEN = 16


def write_ticket(label, rng):
    own = TOPICS[LABELS[label]].split()
    words = []
    for _ in range(int(rng.integers(8, MAX_LEN - 1))):
        u = rng.random()
        if u < 0.34:
            words.append(rng.choice(own))
        elif u < 0.50:
            words.append(rng.choice(TOPICS[LABELS[rng.integers(0, 4)]].split()))
        else:
            words.append(rng.choice(FILLER))
    return words


class TicketDataset(Dataset):
    def __init__(self, n, seed, outage_weight):
        rng = np.random.default_rng(seed)
        self.y = rng.choice(4, n, p=SHARE)
        self.docs = [write_ticket(k, rng) for k in self.y]
        self.outage_weight = outage_weight

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        ids = [1] + [VOCAB[w] for w in self.docs[i]]
        pad = MAX_LEN - len(ids)
        return {
            "input_ids": torch.tensor(ids + [0] * pad),
            "attention_mask": torch.tensor([1] * len(ids) + [0] * pad),
            "labels": torch.tensor(int(self.y[i])),
            "weight": torch.tensor(float(self.outage_weight if self.y[i] == 3 else 1.0)),
        }
