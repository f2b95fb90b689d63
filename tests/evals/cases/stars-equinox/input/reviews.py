import numpy as np

GOOD, BAD, FILL = range(2, 22), range(22, 42), range(42, 120)
PAD = 0


def load_reviews(n, seed, length=24):
    """Token ids and star ratings, same layout as the public review dumps."""
    r = np.random.default_rng(seed)
    stars = r.choice([1, 2, 3, 4, 5], n, p=[0.14, 0.12, 0.18, 0.26, 0.30])
    tokens = np.zeros((n, length), np.int32)
    for i, s in enumerate(stars):
        m = r.integers(14, length + 1)
        p_good = [0.02, 0.22, 0.5, 0.78, 0.98][s - 1]
        words = [r.choice(GOOD) if r.random() < p_good else r.choice(BAD) for _ in range(m * 2 // 3)]
        words += [r.choice(FILL) for _ in range(m - len(words))]
        r.shuffle(words)
        tokens[i, :m] = words
    return tokens, stars.astype(np.int32)
