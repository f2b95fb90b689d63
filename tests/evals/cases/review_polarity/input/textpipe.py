import csv

import torch

MAX_LEN = 24


def read_reviews(path="reviews.tsv"):
    with open(path, newline="") as f:
        return [(int(y), text.split()) for y, text in csv.reader(f, delimiter="\t")]


def split(rows):
    """First 2000 reviews for training, the rest held out."""
    return rows[:2000], rows[2000:]


class Vocabulary:
    def __init__(self, rows):
        words = {w for _, tokens in rows for w in tokens}
        self.index = {w: i for i, w in enumerate(words, start=2)}

    def __len__(self):
        return len(self.index) + 2

    def encode(self, tokens):
        ids = [self.index.get(w, 1) for w in tokens[:MAX_LEN]]
        return ids + [0] * (MAX_LEN - len(ids))


def tensors(rows, vocab):
    x = torch.tensor([vocab.encode(t) for _, t in rows])
    y = torch.tensor([label for label, _ in rows])
    return x, y
