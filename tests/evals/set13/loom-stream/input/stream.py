import numpy as np
import torch


class ThreadStream:
    """Eight recordings side by side, cut into consecutive chunks of `span` symbols."""

    def __init__(self, path, span, part):
        data = torch.from_numpy(np.load(path)).long()
        cut = int(data.shape[1] * 0.85)
        self.data = data[:, :cut] if part == "fit" else data[:, cut:]
        self.span = span

    def __iter__(self):
        for at in range(0, self.data.shape[1] - self.span - 1, self.span):
            yield self.data[:, at:at + self.span], self.data[:, at + 1:at + self.span + 1]
