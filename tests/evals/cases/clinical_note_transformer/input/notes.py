import json
import re

import torch
from torch.utils.data import Dataset

DEPTS = ["cardiac", "respiratory", "trauma"]
_WORD = re.compile(r"[a-z]+")


def tokenize(text):
    """Lower-cased words; numbers and units carry no signal for routing."""
    return [w for w in _WORD.findall(text.lower()) if w not in {"bp", "hr"}]


class TriageNotes(Dataset):
    def __init__(self, path, vocab=None):
        with open(path) as f:
            self.rows = [json.loads(line) for line in f]
        self.tokens = [tokenize(r["text"]) for r in self.rows]
        if vocab is None:
            vocab = {w: i for i, w in enumerate(sorted({w for t in self.tokens for w in t}), start=1)}
        self.vocab = vocab

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return [self.vocab[w] for w in self.tokens[i]], DEPTS.index(self.rows[i]["dept"])


def collate(batch):
    width = max(len(ids) for ids, _ in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    for row, (seq, _) in zip(ids, batch):
        row[:len(seq)] = torch.tensor(seq, dtype=torch.long)
    return ids, torch.tensor([y for _, y in batch])
