import numpy as np
import torch

MELS, FRAMES = 24, 30
WORDS = ["on", "off", "up", "down", "stop", "go", "left", "right", "louder", "mute"]


class WordBank:
    """Log-mel patches for spoken command words, one smooth template per word plus speaker variation."""

    def __init__(self, seed=17):
        rng = np.random.default_rng(seed)
        base = rng.normal(size=(len(WORDS), MELS, FRAMES))
        kernel = np.hanning(7) / np.hanning(7).sum()
        self.templates = np.stack(
            [np.apply_along_axis(lambda v: np.convolve(v, kernel, mode="same"), 1, t) for t in base]
        ).astype(np.float32)
        self.rng = rng

    def draw(self, words, per_word):
        xs, ys = [], []
        for w in words:
            k = WORDS.index(w)
            for _ in range(per_word):
                shift = int(self.rng.integers(-2, 3))
                gain = 0.8 + 0.4 * self.rng.random()
                patch = np.roll(self.templates[k], shift, axis=1) * gain
                xs.append(patch + 0.35 * self.rng.normal(size=patch.shape))
                ys.append(k)
        x = torch.tensor(np.stack(xs), dtype=torch.float32).unsqueeze(1)
        return x, torch.tensor(ys)
