import copy

import torch


class WeightAverager:
    """Keeps a slowly moving copy of a network that is used for validation and export."""

    def __init__(self, net, decay=0.99, warmup=50):
        self.decay = decay
        self.warmup = warmup
        self.updates = 0
        self.shadow = copy.deepcopy(net).eval()
        for p in self.shadow.parameters():
            p.requires_grad_(False)

    def current_decay(self):
        return min(self.decay, (1 + self.updates) / (self.warmup + self.updates))

    @torch.no_grad()
    def step(self, net):
        self.updates += 1
        d = self.current_decay()
        for avg, live in zip(self.shadow.parameters(), net.parameters()):
            avg.lerp_(live, 1.0 - d)

    def state_dict(self):
        return {"shadow": self.shadow.state_dict(), "updates": self.updates}
