"""Origins in a backward pass, in gradients and in an optimizer's step."""

from __future__ import annotations

import math

import torch
from planting import BAD_STEP, at_bad, fit, mlp, planted
from torch import Tensor, nn


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
