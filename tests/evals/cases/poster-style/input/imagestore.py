import collections
import zlib

import numpy as np


class ImageStore:
    """Compressed archive with a bounded cache of decoded images."""

    def __init__(self, n, side, seed, cache_items):
        rng = np.random.default_rng(seed)
        self.side = side
        self.labels = rng.integers(0, 4, n)
        self.blobs = []
        base = np.linspace(0, 1, side)
        for k in self.labels:
            f = 1 + 2 * k
            img = 127 + 90 * np.sin(6.28 * f * base)[:, None] * np.ones((1, side)) + rng.integers(-20, 20, (side, 1))
            self.blobs.append(zlib.compress(np.repeat(img[None], 3, 0).astype(np.uint8).tobytes(), 1))
        self.cache = collections.OrderedDict()
        self.limit = cache_items

    def __len__(self):
        return len(self.blobs)

    def get(self, i):
        if i in self.cache:
            self.cache.move_to_end(i)
            return self.cache[i]
        raw = np.frombuffer(zlib.decompress(self.blobs[i]), np.uint8).reshape(3, self.side, self.side)
        img = raw.astype(np.float32) / 255
        self.cache[i] = img
        if len(self.cache) > self.limit:
            self.cache.popitem(last=False)
        return img
