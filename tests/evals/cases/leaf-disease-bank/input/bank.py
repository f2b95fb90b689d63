"""Keeps the hardest leaf patches of the run for the report and for replay."""
import heapq
import itertools
import random
import torch


class HardBank:
    def __init__(self, capacity):
        self.capacity = capacity
        self.heap = []
        self._tie = itertools.count()

    def offer(self, losses, images, labels, k):
        """Take the k worst examples of a batch, drop the easiest ones when full."""
        for i in losses.topk(k).indices.tolist():
            item = (losses[i].item(), next(self._tie), images[i], int(labels[i]))
            if len(self.heap) < self.capacity:
                heapq.heappush(self.heap, item)
            else:
                heapq.heappushpop(self.heap, item)

    def sample(self, n):
        picks = random.sample(self.heap, min(n, len(self.heap)))
        return torch.stack([p[2] for p in picks]), torch.tensor([p[3] for p in picks])

    def megabytes(self):
        return sum(p[2].numel() * p[2].element_size() for p in self.heap) / 2 ** 20

    def __len__(self):
        return len(self.heap)
