"""Random molecule-like graphs. Label: is the marked (anchor) atom activated,
i.e. does it have at least two hetero neighbours?"""
import numpy as np
import torch
from torch.utils.data import Dataset

N_TYPES = 5
HETERO = (2, 3)


def random_molecule(rng):
    n = int(rng.integers(8, 20))
    types = rng.choice(N_TYPES, n, p=[0.3, 0.15, 0.25, 0.2, 0.1])
    bonds = {(int(rng.integers(0, i)), i) for i in range(1, n)}
    for _ in range(n // 2):
        a, b = sorted(rng.choice(n, 2, replace=False).tolist())
        bonds.add((a, b))
    deg = np.zeros(n, int)
    het = np.zeros(n, int)
    for a, b in bonds:
        deg[a] += 1
        deg[b] += 1
        het[a] += types[b] in HETERO
        het[b] += types[a] in HETERO
    anchor = int(rng.choice(np.flatnonzero(deg >= 2)))
    pairs = np.array(sorted(bonds)).T
    edge_index = np.concatenate([pairs, pairs[::-1]], 1)
    return types, edge_index, anchor, int(het[anchor] >= 2)


class AnchorAtoms(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.items = [random_molecule(rng) for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        types, edges, anchor, y = self.items[i]
        return {"types": torch.from_numpy(types), "edge_index": torch.from_numpy(edges.copy()),
                "anchor": torch.tensor(anchor), "y": torch.tensor(y)}


def pack_graphs(items):
    """One big disconnected graph per batch."""
    offset, edges, graph_of = 0, [], []
    for g, it in enumerate(items):
        edges.append(it["edge_index"] + offset)
        n = len(it["types"])
        graph_of.append(torch.full((n,), g))
        offset += n
    return {
        "types": torch.cat([it["types"] for it in items]),
        "edge_index": torch.cat(edges, 1),
        "graph_of": torch.cat(graph_of),
        "anchor": torch.stack([it["anchor"] for it in items]),
        "y": torch.stack([it["y"] for it in items]),
    }
