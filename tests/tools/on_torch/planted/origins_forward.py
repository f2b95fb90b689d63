"""Origins in a forward pass: an operation outside its domain, a mask that leaves nothing."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from planting import BAD_STEP, at_bad, fit, mlp, planted
from torch import Tensor, nn


@planted("forward", "log", "log-of-zero")
def log_of_zero() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        p = at_bad(step, torch.sigmoid(net(torch.randn(8, 6))))
        return -torch.log(p).mean()  # <- origin

    fit(net, loss)


@planted("forward", "log", "log-of-negative")
def log_of_negative() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        p = torch.sigmoid(net(torch.randn(8, 6))) - (2.0 if step == BAD_STEP else 0.0)
        return -p.log().mean()  # <- origin

    fit(net, loss)


@planted("forward", "log1p", "log-of-zero")
def log1p_of_minus_one() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        p = torch.sigmoid(net(torch.randn(8, 6)) + (200.0 if step == BAD_STEP else 0.0))
        return -torch.log1p(-p).mean()  # <- origin

    fit(net, loss)


@planted("forward", "sqrt", "sqrt-of-negative")
def sqrt_of_negative() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        var = net(torch.randn(8, 6)).pow(2).mean() - (5.0 if step == BAD_STEP else 0.0)
        return torch.sqrt(var)  # <- origin

    fit(net, loss)


@planted("forward", "rsqrt", "division-by-zero")
def rsqrt_of_zero() -> None:
    net = mlp()

    def loss(step: int) -> Tensor:
        h = at_bad(step, net(torch.randn(8, 6)))
        scale = torch.rsqrt(h.pow(2).mean(-1, keepdim=True))  # <- origin
        return (h * scale).sum()

    fit(net, loss)


@planted("forward", "div", "zero-by-zero")
def normalise_a_zero_vector() -> None:
    net = mlp()

    def loss(step: int) -> Tensor:
        h = at_bad(step, net(torch.randn(8, 6)))
        unit = h / h.norm(dim=-1, keepdim=True)  # <- origin
        return unit.sum()

    fit(net, loss)


@planted("forward", "div", "zero-by-zero")
def mean_over_an_empty_mask() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        error = net(torch.randn(8, 6)).squeeze(-1).pow(2)
        mask = torch.zeros(8) if step == BAD_STEP else torch.ones(8)
        return (error * mask).sum() / mask.sum()  # <- origin

    fit(net, loss)


@planted("forward", "mean", "empty-mean")
def mean_of_no_values() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        error = net(torch.randn(8, 6)).squeeze(-1).pow(2)
        chosen = torch.zeros(8, dtype=torch.bool) if step == BAD_STEP else torch.ones(8, dtype=torch.bool)
        return error[chosen].mean()  # <- origin

    fit(net, loss)


@planted("forward", "reciprocal", "division-by-zero")
def one_over_zero() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        h = at_bad(step, net(torch.randn(8, 6)).abs() + 0.1)
        return h.reciprocal().mean()  # <- origin

    fit(net, loss)


@planted("forward", "pow", "power-of-negative")
def fractional_power_of_negative() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        h = torch.sigmoid(net(torch.randn(8, 6))) + 0.1 - (2.0 if step == BAD_STEP else 0.0)
        return (h ** 1.5).mean()  # <- origin

    fit(net, loss)


@planted("forward", "exp", "exp-overflow")
def exp_of_log_variance() -> None:
    net = mlp(outputs=2)

    def loss(step: int) -> Tensor:
        mu, logvar = net(torch.randn(8, 6)).chunk(2, dim=-1)
        logvar = logvar + (120.0 if step == BAD_STEP else 0.0)
        return 0.5 * (mu.pow(2) + logvar.exp() - logvar - 1).mean()  # <- origin

    fit(net, loss)


@planted("forward", "acos", "outside-domain")
def angle_beyond_one() -> None:
    net = mlp()

    def loss(step: int) -> Tensor:
        cosine = F.cosine_similarity(net(torch.randn(8, 6)), torch.randn(8, 3)) * (1.5 if step == BAD_STEP else 0.9)
        cosine = cosine + (1.0 if step == BAD_STEP else 0.0)
        return torch.acos(cosine).mean()  # <- origin

    fit(net, loss)


@planted("forward", "atanh", "outside-domain")
def atanh_of_one() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        action = torch.tanh(net(torch.randn(8, 6)) + (50.0 if step == BAD_STEP else 0.0))
        return torch.atanh(action).mean()  # <- origin

    fit(net, loss)


@planted("forward", "std", "variance-of-one")
def std_of_one_value() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        out = net(torch.randn(1 if step == BAD_STEP else 8, 6)).squeeze(-1)
        return (out - out.mean()).pow(2).mean() + out.std()  # <- origin

    fit(net, loss)


@planted("forward", "nll_loss", "zero-count")
def every_target_ignored() -> None:
    net = mlp()

    def loss(step: int) -> Tensor:
        target = torch.full((8,), -100) if step == BAD_STEP else torch.randint(0, 3, (8,))
        return F.cross_entropy(net(torch.randn(8, 6)), target)  # <- origin

    fit(net, loss)


@planted("forward", "mul", "python-number")
def a_weight_that_is_nan() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        weight = math.nan if step == BAD_STEP else 1.0
        return net(torch.randn(8, 6)).pow(2).mean() * weight  # <- origin

    fit(net, loss)


@planted("forward", "log", "log-of-zero")
def entropy_of_a_sure_policy() -> None:
    net = mlp()

    def loss(step: int) -> Tensor:
        p = torch.softmax(net(torch.randn(8, 6)) * (1e4 if step == BAD_STEP else 1.0), dim=-1)
        logp = p.log()  # <- origin
        return (p * logp).sum(-1).mean()

    fit(net, loss)


@planted("forward", "mm", "overflow", module="blocks.1")
def overflow_in_a_nested_module() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.Linear(6, 16)

        def forward(self, x: Tensor, scale: float) -> Tensor:
            return (self.up(x) * scale).mm(torch.full((16, 6), 9e3))  # <- origin

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList([Block(), Block()])

        def forward(self, x: Tensor, scale: float) -> Tensor:
            return self.blocks[1](self.blocks[0](x, 1.0), scale)

    net = Net()
    fit(net, lambda step: net(torch.randn(8, 6), 1e30 if step == BAD_STEP else 1.0).mean(), lr=0.0)


@planted("mask", "_softmax", "masked-softmax-row")
def attention_row_masked_completely() -> None:
    net = mlp(6, 8, 8)

    def loss(step: int) -> Tensor:
        h = net(torch.randn(5, 6))
        mask = torch.ones(5, 5, dtype=torch.bool).tril()
        if step == BAD_STEP:
            mask[2] = False
        scores = (h @ h.T).masked_fill(~mask, -math.inf)
        attention = scores.softmax(-1)  # <- origin
        return (attention @ h).pow(2).mean()

    fit(net, loss)


@planted("mask", "_log_softmax", "masked-softmax-row")
def action_mask_forbids_everything() -> None:
    net = mlp()

    def loss(step: int) -> Tensor:
        allowed = torch.ones(8, 3, dtype=torch.bool)
        if step == BAD_STEP:
            allowed[3] = False
        logits = torch.where(allowed, net(torch.randn(8, 6)), torch.tensor(-math.inf))
        logp = F.log_softmax(logits, -1)  # <- origin
        return -logp[:, 0].mean()

    fit(net, loss)


@planted("mask", "_softmax", "masked-softmax-row")
def additive_mask_of_infinities() -> None:
    net = mlp(6, 8, 8)
    causal = torch.full((5, 5), -math.inf).triu(1)

    def loss(step: int) -> Tensor:
        h = net(torch.randn(5, 6))
        pad = torch.zeros(5)
        pad[0 if step == BAD_STEP else 4] = -math.inf
        scores = h @ h.T + causal + pad
        return (torch.softmax(scores, -1) @ h).pow(2).mean()  # <- origin

    fit(net, loss)


@planted("mask", "mul", "infinity-times-zero")
def mask_times_infinity() -> None:
    net = mlp(6, 8, 8)
    never = torch.tensor(-math.inf)

    def loss(step: int) -> Tensor:
        h = net(torch.randn(5, 6))
        keep = torch.ones(5, 5).tril()
        bias = (1 - keep) * never if step == BAD_STEP else (1 - keep) * -1e4  # <- origin
        return (torch.softmax(h @ h.T + bias, -1) @ h).pow(2).mean()

    fit(net, loss)


@planted("mask", "nll_loss", "masked-target")
def the_target_class_is_masked() -> None:
    net = mlp()

    def loss(step: int) -> Tensor:
        logits = net(torch.randn(8, 6))
        logits = logits.masked_fill(torch.tensor([False, False, True]), -math.inf)
        target = torch.randint(0, 3 if step == BAD_STEP else 2, (8,))
        if step == BAD_STEP:
            target[0] = 2
        return F.cross_entropy(logits, target)  # <- origin

    fit(net, loss)


@planted("mask", "log", "log-of-zero")
def a_legitimate_mask_is_not_blamed() -> None:
    net = mlp(6, 8, 8)

    def loss(step: int) -> Tensor:
        h = net(torch.randn(5, 6))
        scores = (h @ h.T).masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -math.inf)
        mixed = torch.softmax(scores, -1) @ h
        return mixed.pow(2).mean() - at_bad(step, h.var() + 0.1).log()  # <- origin

    fit(net, loss)


@planted("mask", "exp", "exp-overflow")
def a_hidden_infinity_is_not_blamed() -> None:
    net = mlp(outputs=2)

    def loss(step: int) -> Tensor:
        a, b = net(torch.randn(8, 6)).unbind(-1)
        safe = torch.nan_to_num(torch.log(torch.relu(a.detach())), neginf=0.0)
        return (safe * b).mean() + (b + (200.0 if step == BAD_STEP else 0.0)).exp().mean()  # <- origin

    fit(net, loss)
