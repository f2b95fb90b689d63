import random

import torch

QUEUES = ["billing", "network", "hardware", "access"]
PAD = 0


def corpus(n, seed):
    """Most tickets are one or two sentences; a few contain a pasted server log."""
    rnd = random.Random(seed)
    rows = []
    for i in range(n):
        q = rnd.randrange(len(QUEUES))
        length = rnd.randrange(8, 30) if i % 211 else 480
        words = [rnd.randrange(1, 400) if rnd.random() < 0.8 else 400 + 20 * q + rnd.randrange(20) for _ in range(length)]
        rows.append((words, q))
    return rows


class Collator:
    def __init__(self, rows, multiple=8):
        longest = max(len(w) for w, _ in rows)
        self.width = -(-longest // multiple) * multiple

    def __call__(self, batch):
        ids = torch.full((len(batch), self.width), PAD)
        for r, (words, _) in enumerate(batch):
            ids[r, : len(words)] = torch.tensor(words)
        return ids, ids.ne(PAD), torch.tensor([q for _, q in batch])
