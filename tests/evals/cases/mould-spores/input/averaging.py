import copy

import torch


class WeightAverage:
    """Exponential average of the weights, used for evaluation."""

    def __init__(self, model, decay=0.98):
        self.module = copy.deepcopy(model).eval()
        for p in self.module.parameters():
            p.requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.module.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - self.decay)

    def __call__(self, x):
        return self.module(x)
