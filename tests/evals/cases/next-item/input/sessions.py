import numpy as np

PAD = 0


def simulate_sessions(n_users, n_items, rng):
    """Users walk between a few neighbouring items; item ids start at 1, 0 is padding."""
    neighbours = rng.integers(1, n_items + 1, size=(n_items + 1, 6))
    out = []
    for _ in range(n_users):
        length = int(rng.integers(8, 20))
        s = [int(rng.integers(1, n_items + 1))]
        while len(s) < length:
            s.append(int(neighbours[s[-1], rng.integers(0, 6)]) if rng.random() < 0.85 else int(rng.integers(1, n_items + 1)))
        out.append(s)
    return out


def windows(sessions, width):
    hist, nxt = [], []
    for s in sessions:
        for pos in range(2, len(s)):
            recent = s[max(0, pos + 1 - width): pos + 1]
            hist.append([PAD] * (width - len(recent)) + recent)
            nxt.append(s[pos])
    return np.asarray(hist), np.asarray(nxt)
