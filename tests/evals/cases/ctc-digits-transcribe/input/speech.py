import random

import torch

from text import CHARS, encode

FEATS = 20
LEXICON = ["the", "rat", "ate", "oat", "in", "a", "tin", "hat", "no", "rose", "sent", "nine", "heron", "as", "it", "is"]


def synth(n, seed):
    rng = random.Random(seed)
    g = torch.Generator().manual_seed(seed)
    proto = torch.randn(len(CHARS), FEATS, generator=torch.Generator().manual_seed(1234))
    items = []
    for _ in range(n):
        sent = " ".join(rng.choice(LEXICON) for _ in range(rng.randint(3, 5)))
        frames = []
        for c in sent:
            k = CHARS.index(c)
            frames += [proto[k]] * rng.randint(2, 4)
            frames += [torch.zeros(FEATS)]
        x = torch.stack(frames)
        items.append((x + 0.3 * torch.randn(x.shape, generator=g), torch.tensor(encode(sent)), sent))
    return items


def batches(items, size, shuffle, rng=None):
    order = list(range(len(items)))
    if shuffle:
        rng.shuffle(order)
    for i in range(0, len(order), size):
        part = [items[j] for j in order[i : i + size]]
        x = torch.nn.utils.rnn.pad_sequence([p[0] for p in part], batch_first=True)
        yield (x, torch.tensor([len(p[0]) for p in part]), torch.cat([p[1] for p in part]),
               torch.tensor([len(p[1]) for p in part]), [p[2] for p in part])
