"""Small diagnostics used in the training loop."""
import torch


class GradProbe:
    """Tracks how large the gradient of the shared trunk is for the batch at hand."""

    def __init__(self, model, trunk, beta=0.98):
        self.model, self.trunk, self.beta = model, trunk, beta
        self.ema = {}

    def measure(self, tag, loss):
        """Gradient norm of `loss` w.r.t. the trunk, smoothed per tag. Leaves the graph usable."""
        loss.backward(retain_graph=True)
        sq = sum(p.grad.pow(2).sum() for p in self.trunk.parameters() if p.grad is not None)
        self.model.zero_grad(set_to_none=True)
        n = float(sq.sqrt())
        self.ema[tag] = self.beta * self.ema.get(tag, n) + (1 - self.beta) * n
        return n

    def line(self):
        return " ".join(f"{k}:{v:.3f}" for k, v in sorted(self.ema.items()))
