"""Small trained models and their training state, for faults that a file's own redundancy tells."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import nn


class Residual(nn.Module):
    """Residual layers with a projection that is called `v`."""

    def __init__(self, layers: int = 4, width: int = 24) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"v": nn.Linear(width, width), "o": nn.Linear(width, width)}) for _ in range(layers))
        self.head = nn.Linear(width, 3)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = x + block["o"](torch.tanh(block["v"](x)))  # type: ignore[index]
        return self.head(x)


@cache
def residual(optimizer: str = "AdamW", **extra: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights and the optimizer's state after fifty steps with small gradients."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Residual()
    stepping = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3, **extra)
    for _ in range(50):
        x = torch.randn(16, 24)
        stepping.zero_grad()
        ((model(x) - x[:, :3].sin()).pow(2).mean() * 1e-3).backward()
        stepping.step()
    return {n: t.clone() for n, t in model.state_dict().items()}, stepping.state_dict()
