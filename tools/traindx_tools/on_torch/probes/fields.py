"""Always on: fields of the rows that no batch holds although something asks for them (T726)."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.asked_fields import Asked, asked_on_stack
from traindx_tools.on_torch.measures.batch import named_tensors
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t726_field_dropped
from traindx_tools.on_torch.rules.t726_field_dropped import Dropped

LOOKED_AT = (0, 1, 2, 5, 20)
"""Steps in which it is looked at what is asked for."""
MOST_FIELDS = 64


@dataclass
class _Field:
    """One field: batches without it and with it, and a value."""

    without: int = 0
    within: int = 0
    sample: str = ""


class FieldsProbe(TorchProbe):
    """Compares rows with batches, and listens at losses and backward passes for who asks."""

    name = "fields"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._fields: dict[str, _Field] = {}
        self._keys: set[str] = set()
        self._asked: dict[str, Asked] = {}
        self._taken: dict[str, str] = {}

    def next_look(self) -> int:
        """The next step in which it is looked at what is asked for."""
        return next((k for k in LOOKED_AT if k >= self.scene.step), self.NEVER)

    def collated(self, fields: Mapping[str, list[Any]], batch: Any) -> None:
        """Which fields of the rows are in the batch."""
        keys = set(_keys(batch))
        self._keys |= keys
        parts = [t for _, t in named_tensors(batch)]
        for name, values in list(fields.items())[:MOST_FIELDS]:
            numbers = [_numbers(v) for v in values]
            if any(n is None for n in numbers) or not _differ(numbers):
                continue
            seen = self._fields.setdefault(name, _Field(sample=_told(values[0])))
            if name in keys or any(_holds(part, numbers) for part in parts):
                seen.within += 1
            else:
                seen.without += 1

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Which parameters of `forward` have a default."""
        if self.scene.step not in LOOKED_AT or not torch.is_grad_enabled() or not self._fields:
            return
        try:
            parameters = inspect.signature(model.forward).parameters
        except (TypeError, ValueError):
            return
        for name, p in parameters.items():
            if p.default is not p.empty and name not in kwargs and name in self._fields:
                self._taken[name] = f"{type(model).__name__}.forward"
        self._look()

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Who asks, of those who are computing a loss."""
        self._look()

    def before_backward(self, loss: torch.Tensor) -> None:
        """Who asks, of those who train."""
        self._look()

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        yield from t726_field_dropped.check(list(self._dropped()), self.scene.recorder.rank)

    def _look(self) -> None:
        if self.scene.step not in LOOKED_AT or not any(f.without for f in self._fields.values()):
            return
        for asked in asked_on_stack(sys._getframe(1)):
            if asked.field in self._fields and asked.keys & self._keys:
                self._asked.setdefault(asked.field, asked)

    def _dropped(self) -> Iterator[Dropped]:
        for name, field in self._fields.items():
            if field.within:
                continue
            asked, step = self._asked.get(name), self.scene.step
            if asked is not None:
                yield Dropped(name, field.without, field.sample, asked.function, asked.how, asked.file, asked.line,
                              step)
            elif name in self._taken:
                yield Dropped(name, field.without, field.sample, self._taken[name], step=step)


def _keys(batch: Any, depth: int = 3) -> Iterator[str]:
    if isinstance(batch, Mapping):
        yield from (k for k in batch if isinstance(k, str))
        parts: Iterable[Any] = list(batch.values())
    else:
        parts = batch if isinstance(batch, (list, tuple)) else ()
    for part in parts if depth else ():
        if isinstance(part, (Mapping, list, tuple)):
            yield from _keys(part, depth - 1)


def _numbers(value: Any) -> np.ndarray | None:
    """A value of a row as float64, flat; None where it is no number, or on a device."""
    if isinstance(value, torch.Tensor):
        return value.detach().reshape(-1).to(torch.float64).numpy() if value.device.type == "cpu" else None
    if isinstance(value, (bool, int, float, np.generic, np.ndarray, list, tuple)):
        try:
            found = np.asarray(value, np.float64).reshape(-1)
        except (TypeError, ValueError):
            return None
        return found if found.size else None
    return None


def _differ(numbers: list[Any]) -> bool:
    first = numbers[0]
    return any(n.shape != first.shape or not np.array_equal(n, first) for n in numbers[1:])


def _holds(part: torch.Tensor, numbers: list[Any]) -> bool:
    """Whether the rows of a tensor begin with these values, in any type that keeps them to a thousandth."""
    if part.device.type != "cpu" or not part.ndim or len(part) < len(numbers) or part.is_complex():
        return False
    for row, values in zip(part, numbers, strict=False):
        flat = row.detach().reshape(-1)[:len(values)].to(torch.float64).numpy()
        if len(flat) < len(values) or not np.allclose(flat, values, rtol=1e-3, atol=1e-6, equal_nan=True):
            return False
    return True


def _told(value: Any) -> str:
    text = repr(value.tolist() if hasattr(value, "tolist") else value)
    return text if len(text) <= 40 else f"{text[:37]}..."
