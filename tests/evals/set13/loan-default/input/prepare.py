import numpy as np
import pyarrow.parquet as pq

SKEWED = ("income", "amount", "branch_km")


def read(path, target="default"):
    t = pq.read_table(path)
    names = [c for c in t.column_names if c != target]
    x = np.stack([t[c].to_numpy() for c in names], 1).astype(np.float32)
    for c in SKEWED:
        j = names.index(c)
        x[:, j] = np.log1p(x[:, j])
    return x, t[target].to_numpy().astype(np.float32), names


def auc(score, y):
    order = np.argsort(score, kind="stable")
    rank = np.empty(len(score))
    rank[order] = np.arange(1, len(score) + 1)
    pos = y == 1
    return (rank[pos].sum() - pos.sum() * (pos.sum() + 1) / 2) / (pos.sum() * (~pos).sum())
