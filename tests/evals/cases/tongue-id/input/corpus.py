"""A made-up corpus: short utterances in invented languages, every language is a character Markov chain."""
import numpy as np

LETTERS = "abcdefghijklmnopqrstuvwxyz "
NAMES = ["arvan", "belu", "cotish", "dhemi", "eskar", "fynn", "gorral", "hazu", "ithil", "jomo", "kresh", "luvian"]


def chains(seed=4):
    rng = np.random.default_rng(seed)
    return {name: rng.dirichlet(np.full(len(LETTERS), 0.25), size=len(LETTERS)).cumsum(1) for name in NAMES}


def utterances(n, seed, length=48):
    rng = np.random.default_rng(seed)
    table = chains()
    rows = []
    for _ in range(n):
        name = NAMES[rng.integers(len(NAMES))]
        state, text = len(LETTERS) - 1, []
        for u in rng.random(length):
            state = min(int(np.searchsorted(table[name][state], u)), len(LETTERS) - 1)
            text.append(LETTERS[state])
        rows.append({"text": "".join(text), "lang": name})
    return rows
