"""Small training runs, each with one planted origin of a non-finite value: the line is marked `# <- origin`.

They are used by the test beside this folder and by `benchmarks/nonfinite_origins.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, TensorDataset

MARK = "# <- origin"
BAD_STEP = 4


@dataclass(frozen=True)
class Planted:
    """A run, the operation that is to be named (its beginning), the phase, the reason, and the line."""

    name: str
    run: Callable[[], None]
    op: str
    phase: str
    reason: str
    line: int
    family: str
    module: str | None = None


PLANTED: list[Planted] = []


def planted(family: str, op: str, reason: str, phase: str = "forward", module: str | None = None) -> Callable[
        [Callable[[], None]], Callable[[], None]]:
    def add(run: Callable[[], None]) -> Callable[[], None]:
        lines, first = inspect.getsourcelines(run)
        here = [first + i for i, text in enumerate(lines) if MARK in text]
        assert len(here) == 1, run
        PLANTED.append(Planted(run.__name__, run, op, phase, reason, here[0], family, module))
        return run

    return add


def mlp(inputs: int = 6, hidden: int = 8, outputs: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def fit(model: nn.Module, loss_of: Callable[[int], Tensor], steps: int = 7, lr: float = 0.05) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for step in range(steps):
        loss = loss_of(step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def at_bad(step: int, tensor: Tensor, factor: float = 0.0) -> Tensor:
    """The tensor, scaled in the bad step."""
    return tensor * factor if step == BAD_STEP else tensor


# ---- forward


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


# ---- masks


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


# ---- backward


@planted("backward", "div", "sqrt-at-zero", "backward")
def distance_of_equal_points() -> None:
    net = mlp()

    def loss(step: int) -> Tensor:
        h = net(torch.randn(8, 6))
        difference = at_bad(step, h[:4] - h[4:])
        return difference.pow(2).sum(-1).sqrt().mean()  # <- origin

    fit(net, loss)


@planted("backward", "", "where-unsafe-branch", "backward")
def where_with_a_log_behind_it() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        p = at_bad(step, torch.sigmoid(net(torch.randn(8, 6))))
        safe = torch.where(p > 0, p.log(), torch.zeros_like(p))  # <- origin
        return safe.mean() + p.mean()

    fit(net, loss)


@planted("backward", "", "where-unsafe-branch", "backward")
def where_with_a_division_behind_it() -> None:
    net = mlp(outputs=2)

    def loss(step: int) -> Tensor:
        a, b = net(torch.randn(8, 6)).unbind(-1)
        b = at_bad(step, b)
        ratio = a / b  # <- origin
        return torch.where(b == 0, torch.zeros_like(a), ratio).tanh().mean()

    fit(net, loss)


@planted("backward", "", "sqrt-at-zero", "backward")
def power_of_a_half_at_zero() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        h = at_bad(step, torch.sigmoid(net(torch.randn(8, 6))))
        return (h ** 0.5).mean()  # <- origin

    fit(net, loss)


@planted("backward", "", "outside-domain", "backward")
def gradient_of_acos_at_one() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        h = torch.tanh(net(torch.randn(8, 6)) + (40.0 if step == BAD_STEP else 0.0))
        return torch.acos(h).mean()  # <- origin

    fit(net, loss)


@planted("backward", "", "singular-matrix", "backward")
def svd_with_equal_singular_values() -> None:
    net = mlp(outputs=9)

    def loss(step: int) -> Tensor:
        h = net(torch.randn(1, 6)).reshape(3, 3)
        matrix = torch.eye(3) + 0 * h if step == BAD_STEP else torch.eye(3) * torch.tensor([1.0, 2.0, 3.0]) + 0.1 * h
        u, s, v = torch.linalg.svd(matrix)  # <- origin
        return (u[0, 0] + v[0, 0]) * s.sum()

    fit(net, loss)


@planted("custom", "div", "division-by-zero", "backward")
def custom_function_divides_by_zero() -> None:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: Tensor, scale: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
            ctx.save_for_backward(scale)
            return x.clone()

        @staticmethod
        def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def, override]
            (scale,) = ctx.saved_tensors
            return grad / scale, None  # <- origin

    net = mlp(outputs=1)
    fit(net, lambda step: Scale.apply(net(torch.randn(8, 6)), torch.tensor(0.0 if step == BAD_STEP else 1.0)).mean())


@planted("custom", "exp", "exp-overflow")
def custom_function_overflows_forward() -> None:
    class Exponential(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
            y = x.exp()  # <- origin
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad: Tensor) -> Tensor:  # type: ignore[no-untyped-def, override]
            return grad * ctx.saved_tensors[0]

    net = mlp(outputs=1)
    fit(net, lambda step: Exponential.apply(net(torch.randn(8, 6)) + (99.0 if step == BAD_STEP else 0.0)).mean())


@planted("custom", "mul", "python-number", "backward")
def gradient_hook_that_scales_by_infinity() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        h = net(torch.randn(8, 6))
        h.register_hook(lambda grad: grad * (math.inf if step == BAD_STEP else 1.0))  # <- origin
        return h.mean()

    fit(net, loss)


@planted("backward", "", "sqrt-at-zero", "backward")
def gradient_penalty_at_zero_gradient() -> None:
    critic = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))

    def loss(step: int) -> Tensor:
        x = torch.randn(8, 6, requires_grad=True)
        score = at_bad(step, critic(x)).sum()
        (slope,) = torch.autograd.grad(score, x, create_graph=True)
        size = slope.pow(2).sum(-1).sqrt()  # <- origin
        return (size - 1).pow(2).mean()

    fit(critic, loss)


# ---- gradients and optimizer


@planted("optimizer", "", "zero-by-zero", "gradients")
def own_clipping_divides_by_a_zero_norm() -> None:
    net = mlp(outputs=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(7):
        optimizer.zero_grad()
        at_bad(step, net(torch.randn(8, 6))).mean().backward()
        norm = torch.stack([p.grad.norm() for p in net.parameters() if p.grad is not None]).norm()
        for p in net.parameters():
            assert p.grad is not None
            p.grad = p.grad / norm  # <- origin
        optimizer.step()


@planted("optimizer", "addcdiv", "optimizer-division", "optimizer")
def adam_without_eps() -> None:
    net = mlp(outputs=1)
    dead = nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.Adam([*net.parameters(), dead], lr=0.01, eps=0.0, foreach=False)
    for step in range(6):
        optimizer.zero_grad()
        unused = (dead * 0).sum() if step >= BAD_STEP else 0.0
        (net(torch.randn(8, 6)).pow(2).mean() + unused).backward()
        optimizer.step()  # <- origin


@planted("optimizer", "_foreach_addcdiv_", "optimizer-division", "optimizer")
def adam_without_eps_all_at_once() -> None:
    net = mlp(outputs=1)
    dead = nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.Adam([*net.parameters(), dead], lr=0.01, eps=0.0, foreach=True)
    for step in range(6):
        optimizer.zero_grad()
        unused = (dead * 0).sum() if step >= BAD_STEP else 0.0
        (net(torch.randn(8, 6)).pow(2).mean() + unused).backward()
        optimizer.step()  # <- origin


@planted("optimizer", "add", "python-number", "optimizer")
def a_schedule_that_gives_nan() -> None:
    net = mlp(outputs=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    for step in range(7):
        optimizer.param_groups[0]["lr"] = math.nan if step == BAD_STEP else 0.1
        optimizer.zero_grad()
        net(torch.randn(8, 6)).pow(2).mean().backward()
        optimizer.step()  # <- origin


@planted("optimizer", "div", "optimizer-division", "optimizer")
def an_own_optimizer_divides_by_zero() -> None:
    class Signed(torch.optim.Optimizer):
        def __init__(self, params: object) -> None:
            super().__init__(params, {"lr": 0.01})  # type: ignore[arg-type]

        @torch.no_grad()
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(group["lr"] * (p.grad / p.grad.abs()))  # <- origin

    net = nn.Linear(6, 1)
    optimizer = Signed(net.parameters())
    for step in range(7):
        optimizer.zero_grad()
        at_bad(step, net(torch.randn(8, 6))).pow(2).mean().backward()
        optimizer.step()


# ---- data


class Rows(Dataset[Tensor]):
    def __init__(self, bad: int) -> None:
        self.rows = torch.randn(64, 6)
        self.rows[bad, 2] = math.nan

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Tensor:
        return self.rows[index]


@planted("data", "", "data")
def a_nan_in_one_row() -> None:
    net = mlp(outputs=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in DataLoader(Rows(35), batch_size=8):  # <- origin
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()


@planted("data", "", "data")
def a_nan_among_the_labels() -> None:
    net = mlp(outputs=1)
    labels = torch.rand(64, 1)
    labels[40] = math.nan
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in DataLoader(TensorDataset(torch.randn(64, 6), labels), batch_size=8):  # <- origin
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()


@planted("data", "", "data")
def a_nan_in_a_table_without_a_loader() -> None:
    net = mlp(outputs=1)
    table = torch.randn(64, 6)
    table[35, 1] = math.nan

    def loss(step: int) -> Tensor:
        rows = torch.arange(8 * step, 8 * step + 8)
        x = table[rows]  # <- origin
        return net(x).pow(2).mean()

    fit(net, loss)


@planted("data", "div", "zero-by-zero")
def standardised_by_a_zero_spread() -> None:
    table = torch.randn(64, 6)
    table[:, 3] = 5.0
    table = (table - table.mean(0)) / (table.max(0).values - table.min(0).values)  # <- origin
    net = mlp(outputs=1)
    fit(net, lambda step: net(table[8 * step:8 * step + 8]).pow(2).mean())


@planted("data", "", "parameter")
def a_checkpoint_with_a_nan() -> None:
    net = mlp(outputs=1)
    weight = np.ones((8, 6), np.float32)
    weight[2, 3] = np.nan
    net.load_state_dict({**net.state_dict(), "0.weight": torch.from_numpy(weight)})  # <- origin
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        out = net(torch.randn(8, 6))
        out.pow(2).mean().backward()
        optimizer.step()


@planted("data", "", "uninitialised")
def memory_that_nobody_wrote() -> None:
    net = mlp(outputs=1)
    torch.use_deterministic_algorithms(True)  # fills what `empty` gives with NaN
    try:
        def loss(step: int) -> Tensor:
            target = torch.empty(8, 1) if step == BAD_STEP else torch.zeros(8, 1)  # <- origin
            return F.mse_loss(net(torch.randn(8, 6)), target)

        fit(net, loss)
    finally:
        torch.use_deterministic_algorithms(False)


# ---- half precision


@planted("half", "addmm", "half-overflow")
def activation_beyond_65504() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        x = torch.randn(8, 6) * (1e4 if step == BAD_STEP else 1.0)
        with torch.autocast("cpu", dtype=torch.float16):
            out = F.linear(x, torch.full((8, 6), 40.0), torch.zeros(8))  # <- origin
        return (out - out.mean()).float().pow(2).mean() * 1e-9 + net(torch.randn(8, 6)).mean()

    fit(net, loss)


@planted("half", "pow", "half-overflow")
def square_in_float16() -> None:
    net = mlp(outputs=3)

    def loss(step: int) -> Tensor:
        h = net(torch.randn(8, 6)).half() * (3000.0 if step == BAD_STEP else 1.0)
        variance = h.pow(2).mean(-1)  # <- origin
        return variance.float().mean()

    fit(net, loss)


@planted("half", "_to_copy", "half-overflow")
def cast_to_float16() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        big = net(torch.randn(8, 6)) * (1e8 if step == BAD_STEP else 1.0)
        small = big.half()  # <- origin
        return small.float().mean()

    fit(net, loss)


@planted("half", "exp", "exp-overflow")
def exponential_in_bfloat16() -> None:
    net = mlp(outputs=1)

    def loss(step: int) -> Tensor:
        h = net(torch.randn(8, 6)).bfloat16() + (100.0 if step == BAD_STEP else 0.0)
        return h.exp().float().mean()  # <- origin

    fit(net, loss)


@planted("half", "", "division-by-zero")
def eps_that_float16_rounds_to_zero() -> None:
    net = mlp(outputs=4)

    def loss(step: int) -> Tensor:
        h = at_bad(step, net(torch.randn(8, 6)).half())
        scale = 1 / (h.pow(2).mean(-1, keepdim=True) + 1e-8)  # <- origin
        return (h.detach() * scale).float().mean()

    fit(net, loss)


@planted("half", "sum", "half-overflow")
def scaled_loss_with_a_forward_overflow() -> None:
    net = mlp(outputs=3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for step in range(7):
        optimizer.zero_grad()
        h = net(torch.randn(8, 6)).half() * (9000.0 if step == BAD_STEP else 1.0)
        total = h.abs().sum()  # <- origin
        scaler.scale(total.float().log()).backward()
        scaler.step(optimizer)
        scaler.update()


@planted("half", "mul", "half-overflow-gradient", "backward")
def every_step_is_skipped_by_the_scaler() -> None:
    net = mlp(outputs=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0, growth_interval=1000)
    for step in range(40):
        optimizer.zero_grad()
        small = net(torch.randn(8, 6)).half() * 1e-4
        gain = torch.tensor(60000.0 if step >= BAD_STEP else 1.0)
        loss = (small * gain.half()).float().mul(1e-3).sum()  # <- origin
        scaler.scale(loss * (1e12 if step >= BAD_STEP else 1.0)).backward()
        scaler.step(optimizer)
        scaler.update()


# ---- checkpointed, compiled


@planted("checkpointed", "log", "log-of-zero")
def inside_a_checkpoint() -> None:
    linear = nn.Linear(6, 6)

    def block(x: Tensor, shift: Tensor) -> Tensor:
        return torch.log(torch.sigmoid(linear(x)) * shift)  # <- origin

    fit(linear, lambda step: checkpoint(block, torch.randn(8, 6), torch.tensor(0.0 if step == BAD_STEP else 1.0),
                                        use_reentrant=False).mean())


@planted("checkpointed", "log", "log-of-zero")
def inside_a_reentrant_checkpoint() -> None:
    linear = nn.Linear(6, 6)

    def block(x: Tensor, shift: Tensor) -> Tensor:
        return torch.log(torch.sigmoid(linear(x)) * shift)  # <- origin

    fit(linear, lambda step: checkpoint(block, torch.randn(8, 6, requires_grad=True), torch.tensor(
        0.0 if step == BAD_STEP else 1.0), use_reentrant=True).mean())


@planted("checkpointed", "div", "sqrt-at-zero", "backward")
def backward_of_a_checkpoint() -> None:
    linear = nn.Linear(6, 6)

    def block(x: Tensor, shift: Tensor) -> Tensor:
        return (linear(x) * shift).pow(2).sum(-1).sqrt()  # <- origin

    fit(linear, lambda step: checkpoint(block, torch.randn(8, 6), torch.tensor(0.0 if step == BAD_STEP else 1.0),
                                        use_reentrant=False).mean())


@planted("compiled", "log", "log-of-zero")
def inside_a_compiled_module() -> None:
    linear = nn.Linear(6, 6)

    def forward(x: Tensor, shift: Tensor) -> Tensor:
        return torch.log(torch.sigmoid(linear(x)) * shift)  # <- origin

    compiled = torch.compile(forward, backend="eager")
    fit(linear, lambda step: compiled(torch.randn(8, 6), torch.tensor(0.0 if step == BAD_STEP else 1.0)).mean())


@planted("compiled", "div", "sqrt-at-zero", "backward")
def backward_of_a_compiled_region() -> None:
    linear = nn.Linear(6, 6)

    def forward(x: Tensor, shift: Tensor) -> Tensor:
        return (linear(x) * shift).pow(2).sum(-1).sqrt()  # <- origin

    compiled = torch.compile(forward, backend="aot_eager")
    fit(linear, lambda step: compiled(torch.randn(8, 6), torch.tensor(0.0 if step == BAD_STEP else 1.0)).mean())


FILE = Path(__file__)
