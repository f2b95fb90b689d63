"""Programs whose step goes wrong, one fault each, and healthy ones that look suspicious.

Each returns everything that it has at its end, so that two runs can be compared bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

Program = Callable[[], Any]


def all_of(*parts: Any) -> list[str]:
    """Values of modules, optimizers and numbers, exactly."""
    told: list[str] = [str(torch.randn(()).item().hex())]
    for part in parts:
        state = part.state_dict() if hasattr(part, "state_dict") else part
        told += [t.double().numpy().tobytes().hex() for t in tensors(state)]
    return told


def tensors(value: Any) -> Iterator[Tensor]:
    """In nested containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors(part)


def regression(count: int = 256) -> tuple[Tensor, Tensor]:
    x = torch.randn(count, 8)
    return x, x[:, :1] + 0.1 * torch.randn(count, 1)


def net(*between: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 32), *between, nn.ReLU(), nn.Linear(32, 1))


# ---- faults


def half_overflow() -> list[str]:
    """Activations beyond 65504 in float16, from step 12 on; a norm after them keeps everything else sane."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 1))
    with torch.no_grad():
        model[0].weight.mul_(800.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = regression()
    for step in range(16):
        rows = slice(8 * step, 8 * step + 8)
        scale = 60.0 if step == 12 else 1.0
        with torch.autocast("cpu", dtype=torch.float16):
            loss = functional.mse_loss(model(x[rows] * scale).float(), y[rows])
        optimizer.zero_grad()
        loss.backward()
        if not loss.isfinite():
            break
        optimizer.step()
    return all_of(model, optimizer)


def half_resolution() -> list[str]:
    """1 - p is 0 in bfloat16 where p is near 1."""
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, _ = regression()
    for step in range(16):
        rows = slice(8 * step, 8 * step + 8)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            p = torch.sigmoid(model(x[rows]) + (7.0 if step == 12 else 0.0))
            loss = -torch.log(1.0 - p).mean()
        optimizer.zero_grad()
        loss.backward()
        if not loss.isfinite():
            break
        optimizer.step()
    return all_of(model, optimizer)


def bad_row() -> list[str]:
    """Row 137 of 256 holds an infinity."""
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = regression()
    x[137, 3] = float("inf")
    for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        loss = functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        if not loss.isfinite():
            break
        optimizer.step()
    return all_of(model, optimizer)


def outlying_row() -> list[str]:
    """The target of one row is 3,000: plain gradient descent is thrown out of its course."""
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = regression(1024)
    y[705] = 3_000.0
    for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=16):
        loss = functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return all_of(model, optimizer)


def wrong_state() -> list[str]:
    """After a resume the first moments are those of another scale of the loss."""
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(60):
        x, y = regression(32)
        loss = functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if step == 40:
            for state in optimizer.state.values():
                state["exp_avg"].mul_(65_536.0)
        optimizer.step()
    return all_of(model, optimizer)


def never_cleared() -> list[str]:
    """Gradients add up from step to step."""
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(90):
        x, y = regression(32)
        functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return all_of(model, optimizer)


def high_rate() -> list[str]:
    """Two hundred times what is stable."""
    torch.manual_seed(0)
    model = net(nn.Dropout(0.1))
    optimizer = torch.optim.SGD(model.parameters(), lr=3.0)
    for _ in range(8):
        x, y = regression(32)
        loss = functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return all_of(model, optimizer)


def strong_decay() -> list[str]:
    """A decay that turns the weights round, from step 30 on."""
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    for step in range(60):
        x, y = regression(32)
        loss = functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if step == 30:
            optimizer.param_groups[0]["weight_decay"] = 800.0
        optimizer.step()
    return all_of(model, optimizer)


def dead_moments() -> list[str]:
    """Adam without an epsilon divides by a second moment of zero: parameters are not finite after the step."""
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), eps=0.0)
    for step in range(4):
        x, y = regression(32)
        loss = functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if step == 2:
            for p in model.parameters():
                assert p.grad is not None
                p.grad.zero_()
            for state in optimizer.state.values():
                state["exp_avg_sq"].zero_()
        optimizer.step()
    return all_of(model, optimizer)


def clipped_and_high() -> list[str]:
    """Clipped to a norm of 1, with a rate of 8."""
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=8.0)
    for _ in range(4):
        x, y = regression(32)
        loss = functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return all_of(model, optimizer)


# ---- healthy


def plain_training() -> list[str]:
    torch.manual_seed(0)
    model = net(nn.BatchNorm1d(32), nn.Dropout(0.2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x, y = regression()
    for _ in range(8):
        for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
            loss = functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
    return all_of(model, optimizer)


def accumulating() -> list[str]:
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = regression()
    for _ in range(6):
        for i, (inputs, targets) in enumerate(DataLoader(TensorDataset(x, y), batch_size=16)):
            (functional.mse_loss(model(inputs), targets) / 4).backward()
            if i % 4 == 3:
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)
    return all_of(model, optimizer)


def harder_task() -> list[str]:
    """A curriculum: from step 40 on the targets are four times as large."""
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(80):
        x, y = regression(64)
        loss = functional.mse_loss(model(x), y * (4.0 if step >= 40 else 1.0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return all_of(model, optimizer)


def hard_batch() -> list[str]:
    """One batch is a hundred times as hard; Adam goes on as before."""
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(70):
        x, y = regression(32)
        loss = functional.mse_loss(model(x), y * (20.0 if step == 45 else 1.0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return all_of(model, optimizer)


def two_players() -> list[str]:
    """Two optimizers whose losses swing against each other."""
    torch.manual_seed(0)
    maker, judge = net(), nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1))
    first, second = (torch.optim.Adam(m.parameters(), lr=1e-2) for m in (maker, judge))
    ones = torch.ones(32, 1)
    for _ in range(30):
        fake, real = maker(torch.randn(32, 8)), torch.randn(32, 1) + 3.0
        second.zero_grad()
        (functional.softplus(-judge(real)) + functional.softplus(judge(fake.detach()))).mean().backward()
        second.step()
        first.zero_grad()
        functional.binary_cross_entropy_with_logits(judge(fake), ones).backward()
        first.step()
    return all_of(maker, judge)


def small_and_signed() -> list[str]:
    """A loss around zero has no scale."""
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(60):
        x, _ = regression(32)
        loss = (model(x).tanh() * torch.randn(32, 1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return all_of(model, optimizer)


HEALTHY = (plain_training, accumulating, harder_task, hard_batch, two_players, small_and_signed)
