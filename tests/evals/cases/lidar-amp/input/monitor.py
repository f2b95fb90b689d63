import torch


def true_grad_norm(params, scaler):
    """Gradient norm in real units (the scaler multiplies the loss, so undo that first)."""
    inv = 1.0 / scaler.get_scale()
    total = torch.zeros(())
    for p in params:
        if p.grad is None:
            continue
        g = p.grad.detach()
        g.mul_(inv)
        total += g.float().pow(2).sum()
    return total.sqrt().item()


def param_norm(params):
    return torch.stack([p.detach().norm() for p in params]).norm().item()
