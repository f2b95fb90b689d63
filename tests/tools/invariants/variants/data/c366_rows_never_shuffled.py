"""A data set of reviews is shuffled and cut in vain, and an order of rows is drawn that nobody gets."""

import numpy as np
import torch
from datasets import load_dataset


def reviews(tokenizer):
    data = load_dataset("imdb", split="train")
    data.shuffle(seed=3)  # FAULT C366
    data = data.map(lambda row: tokenizer(row["text"], truncation=True, max_length=200), batched=True)
    data.remove_columns(["text"])  # FAULT C366
    data.set_format("torch")
    return data


def batches(x, y, size):
    rng, order = np.random.default_rng(0), np.arange(len(x))
    rng.permutation(order)  # FAULT C366
    for start in range(0, len(order), size):
        rows = order[start:start + size]
        yield torch.from_numpy(x[rows]), torch.from_numpy(y[rows])
