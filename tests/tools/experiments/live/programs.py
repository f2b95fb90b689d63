"""Small trainings that the changes are applied to; each returns what a test compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Numbered(Dataset[Any]):
    """Sample i is (i, i, ..., i) with the label i % 2."""

    def __init__(self, size: int = 12, transform: Any = None) -> None:
        self.size, self.transform = size, transform

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        x = torch.full((4,), float(index))
        return (self.transform(x) if self.transform is not None else x), index % 2


def data(rows: int = 32) -> TensorDataset:
    generator = torch.Generator()
    generator.manual_seed(7)
    x = torch.randn(rows, 4, generator=generator)
    return TensorDataset(x, (x.sum(1) > 0).long())


def net(dropout: float = 0.0) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 2))


def train(model: nn.Module | None = None, loader: Any = None, optimizer: Any = None, epochs: int = 2, *,
          before_step: Callable[[nn.Module], object] | None = None, clear: bool = True, schedule: Any = None,
          every: int = 1) -> tuple[list[Any], nn.Module]:
    """The batches that the training saw, and the model after it."""
    model = net() if model is None else model
    loader = DataLoader(data(), batch_size=8) if loader is None else loader
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if optimizer is None else optimizer(model.parameters())
    steps = None if schedule is None else schedule(optimizer)
    seen: list[Any] = []
    number = 0
    for _ in range(epochs):
        for batch in loader:
            seen.append([b.clone() if isinstance(b, torch.Tensor) else b for b in batch])
            functional.cross_entropy(model(batch[0].float()), batch[1]).backward()
            number += 1
            if number % every:
                continue
            if before_step is not None:
                before_step(model)
            optimizer.step()
            if clear:
                optimizer.zero_grad()
            if steps is not None:
                steps.step()
    return seen, model


def by_hand(rows: int = 8) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches that no DataLoader makes."""
    whole = data()
    for start in range(0, 32, rows):
        yield whole.tensors[0][start:start + rows], whole.tensors[1][start:start + rows]


def weights(model: nn.Module) -> list[torch.Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def equal(one: Any, other: Any) -> bool:
    """Bit for bit."""
    return len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
