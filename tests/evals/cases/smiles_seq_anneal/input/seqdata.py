import numpy as np

ALPHABET = "^$ _CNOSFclBr()=#123"
STOI = {c: i for i, c in enumerate(ALPHABET)}
PAD = STOI["_"]


def _fragment(rng):
    return rng.choice(["C", "CC", "N", "O", "C(=O)", "c1ccccc1", "C#N", "S", "C(N)", "F", "OC", "NC"])


def sample_string(rng, max_len):
    s = ""
    while True:
        piece = _fragment(rng)
        if len(s) + len(piece) > max_len - 2 or (s and rng.random() < 0.12):
            return "^" + s + "$"
        s += piece


def batches(batch, max_len, seed):
    rng = np.random.default_rng(seed)
    while True:
        out = np.full((batch, max_len), PAD, np.int32)
        for row in out:
            ids = [STOI[c] for c in sample_string(rng, max_len)]
            row[:len(ids)] = ids
        yield out
