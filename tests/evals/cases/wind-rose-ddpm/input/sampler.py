"""Fast deterministic sampler (DDIM, eta = 0)."""
import torch
from schedule import Schedule


@torch.no_grad()
def ddim(model, n, dim, train_steps, steps, beta_start, beta_end, generator=None):
    sched = Schedule(steps, beta_start, beta_end)
    stride = train_steps // steps
    x = torch.randn(n, dim, generator=generator)
    for i in reversed(range(steps)):
        t = torch.full((n,), i * stride, dtype=torch.long)
        eps = model(x, t)
        a = sched.abar[i]
        prev = sched.abar[i - 1] if i > 0 else torch.tensor(1.0)
        x0 = (x - (1 - a).sqrt() * eps) / a.sqrt()
        x0 = x0.clamp(-4, 4)
        x = prev.sqrt() * x0 + (1 - prev).sqrt() * eps
    return x
