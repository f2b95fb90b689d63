import torch


class Schedule:
    """Linear beta schedule with the usual cumulative terms."""

    def __init__(self, steps, beta_start=1e-4, beta_end=0.04):
        self.steps = steps
        self.beta = torch.linspace(beta_start, beta_end, steps)
        self.alpha = 1 - self.beta
        self.abar = self.alpha.cumprod(0)

    def q_sample(self, x0, t, eps):
        a = self.abar[t][:, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * eps
