"""Turn the appointment table into a matrix."""
import numpy as np

NUMERIC = ["lead_days", "age", "hour", "sms"]
CATEGORICAL = ["patient", "doctor", "street"]


def encode_category(column, outcome, smooth=0.3):
    """Mean outcome of each level, shrunk to the base rate."""
    base = outcome.mean()
    levels, code = np.unique(column, return_inverse=True)
    n = np.bincount(code)
    s = np.bincount(code, weights=outcome)
    rate = (s + smooth * base) / (n + smooth)
    return {level: r for level, r in zip(levels, rate)}, base


def build(table):
    y = table["noshow"].astype(np.float32)
    cols = [table[c].astype(np.float32) for c in NUMERIC]
    for c in CATEGORICAL:
        mapping, base = encode_category(table[c], y)
        cols.append(np.array([mapping.get(v, base) for v in table[c]], dtype=np.float32))
    x = np.stack(cols, 1)
    return x, y
