import random

PAD, BOS, EOS, UNK = 1, 0, 2, 3


class WordTokenizer:
    """Tiny stand-in for the byte-level tokenizer: same special ids (<s>=0, <pad>=1, </s>=2, <unk>=3)."""

    def __init__(self, vocab):
        self.vocab = vocab

    def __call__(self, words, max_length):
        ids = [4 + w % (self.vocab - 4) for w in words][: max_length - 2]
        return [BOS] + ids + [EOS]


def essays(n, seed):
    rnd = random.Random(seed)
    out = []
    for i in range(n):
        grade = rnd.random()
        length = int(rnd.triangular(25, 118, 60)) if rnd.random() > 0.012 else rnd.randrange(140, 260)
        words = [rnd.randrange(0, 300) if rnd.random() > grade else rnd.randrange(300, 596) for _ in range(length)]
        out.append({"id": f"E{i:05d}", "words": words, "grade": grade})
    return out


def pad_batch(rows):
    width = max(len(r) for r in rows)
    ids = [r + [PAD] * (width - len(r)) for r in rows]
    mask = [[1] * len(r) + [0] * (width - len(r)) for r in rows]
    return ids, mask
