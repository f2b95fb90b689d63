"""The gradient that an accumulation window adds up, against that of the same rows in one batch.

One large batch gives every element that a loss counts (a token, a sample) the same weight. What each pass of a window
adds is measured; with the value that its loss returned, the value that backward was called on and the number of
elements that were counted, the gradient of the mean over all of them follows without another pass:

    G = sum of n_i / N * (value_i / given_i) * g_i

Where samples influence each other (BatchNorm) it is that of the same statistics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traindx_tools.on_torch.measures.late import Late

WINDOWS, MOST_PASSES, VALUES = 8, 16, 4096
"""Windows that are measured, passes of one, and values of the gradient that are compared."""


@dataclass(frozen=True)
class WindowGradient:
    """Medians over the measured windows."""

    windows: int
    passes: int
    spread: float
    """The weight of an element of one pass over that of one of another, the largest of a window."""
    cosine: float
    """Of the accumulated gradient and that of one batch."""
    ratio: float
    """The norm of the first over that of the second; NaN where a loss is a sum, whose divisor is not known."""
    stepped: float
    """The norm that the step takes over that after the last pass: what divides the gradients before a step."""


@dataclass
class _Pass:
    given: float
    value: float
    count: float
    mean: bool
    added: NDArray[np.float64]
    key: Any


@dataclass
class _Window:
    passes: list[_Pass] = field(default_factory=list)
    total: NDArray[np.float64] | None = None
    expected: int = -1


class WindowGradients:
    """Told of losses, passes and steps of a program with one optimizer; measures its first windows."""

    def __init__(self) -> None:
        self._late: Late[tuple[int, str, Any]] = Late()
        self._held: list[torch.Tensor] = []
        self._windows: dict[int, _Window] = {}
        self._number = self._passes = 0
        self._loss: tuple[Any, torch.Tensor, torch.Tensor, bool] | None = None
        self._losses = 0
        self._before: torch.Tensor | None = None
        self._sound = True

    def found(self, optimizer: torch.optim.Optimizer) -> None:
        """Whose gradients are compared."""
        self._held = [p for g in optimizer.param_groups for p in g["params"] if p.requires_grad and p.numel()]

    @property
    def _on(self) -> bool:
        return bool(self._held) and self._number < WINDOWS and self._sound

    def loss(self, name: str, given: Mapping[str, Any], value: torch.Tensor, key: Any) -> None:
        """A mean or sum was computed."""
        self._losses += 1
        counted = _counted(name, given)
        if self._on and counted is not None and self._losses == 1:
            self._loss = key, value.detach(), counted, given.get("reduction") == "mean"
        else:
            self._loss = None

    def before_backward(self) -> None:
        """What is there before a pass."""
        if self._on and self._loss is not None and self._passes < MOST_PASSES:
            self._before = self._sample()

    def after_backward(self, loss: torch.Tensor | None) -> None:
        """What it added. `loss`: what backward was called on, before a scaler."""
        if not self._on:
            return
        self._passes += 1
        if self._loss is None or self._before is None or loss is None or loss.numel() != 1:
            self._sound = self._passes > 1 and self._sound
        else:
            key, value, counted, mean = self._loss
            head = [t.reshape(1).to(self._before) for t in (loss, value, counted)]
            self._late.send((self._number, "pass", (key, mean)), torch.cat([*head, self._sample() - self._before]))
        self._loss, self._before, self._losses = None, None, 0

    def before_step(self) -> None:
        """What the step takes; the window ends."""
        if self._on and self._passes > 1:
            self._late.send((self._number, "step", self._passes), self._sample())
        self._number += self._passes > 1
        self._passes = self._losses = 0
        self._loss = None

    def read(self, *, wait: bool = False) -> None:
        """Takes what has arrived."""
        for (number, kind, tag), vector in self._late.arrived(wait=wait):
            window = self._windows.setdefault(number, _Window())
            if kind == "step":
                window.total, window.expected = vector, tag
            else:
                key, mean = tag
                given, value, count = (float(v) for v in vector[:3])
                window.passes.append(_Pass(given, value, count, mean, vector[3:], key))

    def measured(self) -> WindowGradient | None:
        """None where no window could be measured."""
        these = [m for w in self._windows.values() for m in [_measured(w)] if m is not None]
        if not these:
            return None
        spread, cosine, ratio, stepped, passes = (float(np.median(v)) for v in zip(*these, strict=True))
        return WindowGradient(len(these), int(passes), spread, cosine, ratio, stepped)

    def _sample(self) -> torch.Tensor:
        room = max(1, VALUES // len(self._held))
        with torch.no_grad():
            parts = [_values(p, room) for p in self._held[:VALUES]]
            return torch.cat([p.to(parts[0].device) for p in parts])


def _values(p: torch.Tensor, room: int) -> torch.Tensor:
    count = min(room, p.numel())
    if p.grad is None or p.grad.layout != torch.strided:
        return torch.zeros(count, device=p.device)
    flat = p.grad.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // room)][:count].float()


def _counted(name: str, given: Mapping[str, Any]) -> torch.Tensor | None:
    """How many elements a loss is the mean of; None where they have weights of their own."""
    target, source = given.get("target"), given.get("input")
    if given.get("reduction") not in ("mean", "sum") or given.get("weight") is not None or not isinstance(
            target, torch.Tensor) or not isinstance(source, torch.Tensor):
        return None
    if name in ("cross_entropy", "nll_loss"):
        if target.is_floating_point():
            return torch.tensor(float(source.numel() // max(1, source.shape[min(1, source.ndim - 1)])))
        counted: torch.Tensor = (target != given.get("ignore_index", -100)).sum().float()
        return counted
    if name in ("kl_div", "ctc_loss", "gaussian_nll_loss"):
        return None
    return torch.tensor(float(source.numel()))


def _measured(window: _Window) -> tuple[float, float, float, float, int] | None:
    passes = window.passes
    if window.total is None or len(passes) != window.expected or len({(p.key, p.mean) for p in passes}) != 1:
        return None
    if any(p.count <= 0 or not np.isfinite([p.given, p.value]).all() or p.value * p.given <= 0 for p in passes):
        return None
    mean = passes[0].mean
    whole = sum(p.count for p in passes)
    factors = [p.given / p.value for p in passes]
    weights = [f / p.count if mean else f for f, p in zip(factors, passes, strict=True)]
    one: NDArray[np.float64] = np.sum([p.added / f * (p.count / whole if mean else 1.0)
                                       for f, p in zip(factors, passes, strict=True)], axis=0)
    added: NDArray[np.float64] = np.sum([p.added for p in passes], axis=0)
    lengths = [float(np.linalg.norm(v)) for v in (added, one, window.total)]
    if not np.isfinite(lengths).all() or min(lengths[:2]) == 0:
        return None
    cosine = float(added @ one) / (lengths[0] * lengths[1])
    return (max(weights) / min(weights), cosine, lengths[0] / lengths[1] if mean else float("nan"),
            lengths[2] / lengths[0], len(passes))


def told(seen: WindowGradient) -> Iterator[str]:
    """As a fact of the program."""
    if seen.passes > 1:
        size = "" if np.isnan(seen.ratio) else f", {seen.ratio:.3g} times as long"
        yield (f"the gradient of {seen.passes} accumulated passes against one batch of the same rows: cosine "
               f"{seen.cosine:.4f}{size}; elements of one pass weigh up to {seen.spread:.3g} times those of another")
