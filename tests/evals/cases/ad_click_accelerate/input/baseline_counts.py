"""Old count-based click-through baseline (kept for the report)."""
from collections import defaultdict

from train import auc, impressions

if __name__ == "__main__":
    clicks, shown = defaultdict(float), defaultdict(float)
    for ids, y in impressions(24000, 2):
        clicks[int(ids[0])] += float(y)
        shown[int(ids[0])] += 1
    test = impressions(6000, 3)
    ids, y = test.tensors
    score = [(clicks[int(i)] + 1) / (shown[int(i)] + 4) for i in ids[:, 0]]
    import numpy as np
    print("ad-only auc", auc(np.array(score), y.numpy()))
