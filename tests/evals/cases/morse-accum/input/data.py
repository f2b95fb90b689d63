import random

import torch
from torch.utils.data import Dataset

LETTERS = "ABCDEFGHIKLMNOPRSTUVW"
CODE = dict(zip(LETTERS, ".- -... -.-. -.. . ..-. --. .... .. -.- .-.. -- -. --- .--. .-. ... - ..- ...- .--".split()))
PAD = -100


class Keying(Dataset):
    """On/off keying sampled at 2-4 samples a dot; the target is the letter being sent at each sample (0 in the gaps)."""

    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.items = [self.message(rng) for _ in range(n)]

    @staticmethod
    def message(rng):
        x, y, dot = [0.0] * 3, [0] * 3, rng.choice([2, 3])
        for _ in range(rng.randint(1, 3)):
            k = rng.randrange(len(LETTERS))
            for mark in CODE[LETTERS[k]]:
                on = dot * (3 if mark == "-" else 1)
                x += [1.0] * on + [0.0] * dot
                y += [k + 1] * (on + dot)
            x += [0.0] * 2 * dot
            y += [0] * 2 * dot
        return torch.tensor([v + rng.gauss(0, 0.12) for v in x]), torch.tensor(y)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    items = sorted(items, key=lambda it: -len(it[0]))
    n = torch.tensor([len(x) for x, _ in items])
    x = torch.nn.utils.rnn.pad_sequence([x for x, _ in items], batch_first=True)
    y = torch.nn.utils.rnn.pad_sequence([y for _, y in items], batch_first=True, padding_value=PAD)
    return x, y, n
