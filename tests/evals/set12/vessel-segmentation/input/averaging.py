"""Running average of the weights for evaluation."""
from contextlib import contextmanager

import torch


class WeightAverage:
    def __init__(self, model, decay=0.98):
        self.decay = decay
        self.num_updates = 0
        self.shadow = {k: v.detach() for k, v in model.state_dict().items() if v.is_floating_point()}

    @torch.no_grad()
    def update(self, model):
        self.num_updates += 1
        decay = min(self.decay, (1 + self.num_updates) / (10 + self.num_updates))
        for k, v in model.state_dict().items():
            if k in self.shadow:
                self.shadow[k].mul_(decay).add_(v, alpha=1.0 - decay)

    @contextmanager
    def applied_to(self, model):
        backup = {k: v.clone() for k, v in model.state_dict().items()}
        model.load_state_dict(self.shadow, strict=False)
        try:
            yield model
        finally:
            model.load_state_dict(backup)
