"""Headline generator with a long tail of topics (as in the agency feed)."""
import numpy as np
import torch
from torch.utils.data import Dataset

TOPICS = ["politics", "sport", "economy", "culture", "science", "local", "weather", "chess"]
SHARE = np.array([0.34, 0.25, 0.17, 0.10, 0.07, 0.04, 0.02, 0.01])
WORDS_PER_TOPIC, SHARED, LENGTH = 60, 400, 14
VOCAB = len(TOPICS) * WORDS_PER_TOPIC + SHARED + 1


class Headlines(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        zipf = 1 / np.arange(1, WORDS_PER_TOPIC + 1)
        zipf /= zipf.sum()
        self.y = rng.choice(len(TOPICS), n, p=SHARE)
        self.x = np.zeros((n, LENGTH), np.int64)
        for i, k in enumerate(self.y):
            for j in range(LENGTH):
                u = rng.random()
                topic = k if u < 0.34 else rng.integers(len(TOPICS)) if u < 0.50 else None
                if topic is None:
                    self.x[i, j] = 1 + len(TOPICS) * WORDS_PER_TOPIC + rng.integers(SHARED)
                else:
                    self.x[i, j] = 1 + topic * WORDS_PER_TOPIC + rng.choice(WORDS_PER_TOPIC, p=zipf)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"input_ids": torch.from_numpy(self.x[i]), "labels": torch.tensor(int(self.y[i]))}
