import csv
from typing import NamedTuple

import numpy as np


class Graph(NamedTuple):
    x: np.ndarray        # (nodes, terms)
    adj: np.ndarray      # normalised, with self loops
    y: np.ndarray
    masks: dict


def load(root):
    with open(f"{root}/papers.tsv") as fh:
        rows = list(csv.DictReader(fh, delimiter="\t"))
    index = {r["paper_id"]: i for i, r in enumerate(rows)}
    z = np.load(f"{root}/terms.npz")
    x = np.unpackbits(z["bits"], axis=1)[:, : int(z["n_terms"])].astype(np.float32)
    assert len(x) == len(rows), (len(x), len(rows))
    adj = np.eye(len(rows), dtype=np.float32)
    with open(f"{root}/cites.tsv") as fh:
        for a, b in csv.reader(fh, delimiter="\t"):
            adj[index[a], index[b]] = adj[index[b], index[a]] = 1.0
    d = adj.sum(1) ** -0.5
    split = np.array([r["split"] for r in rows])
    return Graph(
        x / np.maximum(x.sum(1, keepdims=True), 1),
        d[:, None] * adj * d[None],
        np.array([int(r["field"]) for r in rows]),
        {s: split == s for s in ("train", "val", "test")},
    )
