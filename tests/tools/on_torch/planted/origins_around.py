"""Origins in data, in half precision, and inside of checkpointed and compiled parts."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from planting import BAD_STEP, at_bad, fit, mlp, planted
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, TensorDataset


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
