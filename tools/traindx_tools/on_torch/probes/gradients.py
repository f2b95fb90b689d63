"""Norms of gradients by module, as the optimizer sees them, and what follows from their course (T201 to T206, T210)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.parameters import local, norms
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import (
    t201_gradient_explosion,
    t202_gradient_vanishing,
    t203_gradient_zero,
    t204_gradient_imbalance,
    t206_always_clipped,
    t210_learning_rate_zero,
)
from traindx_tools.on_torch.rules.gradients import GradientCourse

RULES = (t201_gradient_explosion, t202_gradient_vanishing, t203_gradient_zero, t204_gradient_imbalance,
         t206_always_clipped)
KEPT = 256
"""Measured steps kept of each optimizer: the most recent ones."""
MODULES_IN_METRICS = 24
ADAPTIVE = ("adam", "lion", "rmsprop", "adagrad", "adadelta", "lamb", "adafactor", "muon", "shampoo", "sophia",
            "prodigy", "sf")  # fmt: skip
FEWEST = 5
WEIGHTS_EVERY = 8
"""Measured steps that share one measurement of the weights' norms, after the first twelve: they change slowly."""


@dataclass
class _Course:
    """One optimizer: its parameters in order, their modules, and what was measured."""

    optimizer: torch.optim.Optimizer
    parameters: list[torch.nn.Parameter]
    paths: list[str]
    rows: deque[dict[str, Any]]
    steps: int = 0
    unclipped: float = math.nan
    loss_scale: float = 1.0
    left: tuple[list[Any], torch.Tensor] | None = None
    """What told the gradients after the last backward pass from others, and their norms."""
    weighed: tuple[list[int], Any] | None = None
    """Places and norms of the weights that were measured last."""
    tops: list[str] = field(init=False)
    """Of each parameter the part of the model, two names deep, under which its norm is recorded."""

    def __post_init__(self) -> None:
        self.tops = [".".join(path.split(".")[:-1][:2]) or "model" for path in self.paths]


class GradientProbe(TorchProbe):
    """Gradient norms by module: vanishing, exploding, zero, unbalanced, always clipped."""

    name = "gradients"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._cadence = Cadence.chosen(scene.options, "gradients", 12, 25)
        self._courses: dict[int, _Course] = {}
        self._late: Late[tuple[int, str, dict[str, Any]]] = Late()

    def next_look(self) -> int:
        """The next measured step."""
        return self.scene.step if self._late else self._cadence.next_due(self.scene.step)

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """Lists its parameters."""
        held = [p for group in optimizer.param_groups for p in group["params"]]
        paths = [self.scene.parameter_paths.get(id(p), f"parameter {i}") for i, p in enumerate(held)]
        self._courses[id(optimizer)] = _Course(optimizer, held, paths, deque(maxlen=KEPT))

    def after_backward(self, loss: torch.Tensor) -> None:
        """The norm before anything clips it, for optimizers whose next step is measured."""
        for key, course in self._courses.items():
            if self.scene.due(self._cadence, course.steps):
                grads = [p.grad for p in course.parameters if p.grad is not None]
                if grads:
                    with torch.no_grad():
                        each = norms(grads)
                        course.left = (_identity(grads), each) if grads[0].device.type == "cpu" else None
                        norm = torch.linalg.vector_norm(each).reshape(1)
                        scale = self._loss_scale(loss, norm)
                        self._late.send((key, "unclipped", {}), torch.cat([norm / scale, scale]))

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Sends the norms of gradients and weights on their way."""
        course = self._courses[id(optimizer)]
        course.steps += 1
        if not self.scene.due(self._cadence, course.steps - 1):
            return
        there = [i for i, p in enumerate(course.parameters) if p.grad is not None]
        if not there:
            return
        tag = {"step": self.scene.step + 1, "there": there, "rate": _rate(optimizer), "scaled": False}
        with torch.no_grad():
            grads = [g for p in course.parameters if (g := p.grad) is not None]
            same = course.left is not None and course.left[0] == _identity(grads)
            parts = [course.left[1] if same and course.left is not None else norms(grads)]
            course.left = None
            tag["weighed"] = self._weights_due(course, there)
            if tag["weighed"]:
                parts.append(norms([course.parameters[i] for i in there]))
            scale = getattr(optimizer, "grad_scale", None)  # set while a fused optimizer unscales by itself
            parts.append(_scalar(scale if scale is not None else 1.0, parts[0]))
            parts.append(_scalar(self.scene.loss if self.scene.loss is not None else math.nan, parts[0]))
            self._late.send((id(optimizer), "norms", tag), torch.cat(parts))

    def _weights_due(self, course: _Course, there: list[int]) -> bool:
        late = len(course.rows) >= 12 and course.weighed is not None and course.weighed[0] == there
        return not late or course.steps % WEIGHTS_EVERY == 0 or self._cadence.every > 1

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived."""
        self._read()

    def finish(self) -> Iterable[Finding]:
        """Judges the course of each optimizer."""
        self._read(wait=True)
        for key in self._courses:
            course = self.course(key)
            if course is not None and len(course.steps) >= FEWEST:
                for rule in RULES:
                    yield from rule.check(course)
                yield from t210_learning_rate_zero.check(course, self._schedule_line())

    def _schedule_line(self) -> str | None:
        """The line that sets the rate: the function of a schedule, or where it is stepped."""
        return next((s.made or s.line for s in self.scene.program.schedules if s.made or s.line), None)

    def course(self, key: int) -> GradientCourse | None:
        """What was measured of the optimizer with this id; None before the first measured step."""
        kept = self._courses[key]
        rows = list(kept.rows)
        if not rows:
            return None
        modules = _modules(kept)
        norm, weight = (_by_module(rows, which, kept, modules) for which in ("grads", "weights"))
        return GradientCourse(
            modules=tuple(modules), steps=tuple(r["step"] for r in rows), norms=norm, weights=weight,
            total=np.array([math.sqrt(float(np.sum(r["grads"] ** 2))) for r in rows]),
            unclipped=np.array([r["unclipped"] for r in rows]), scales=np.array([r["loss_scale"] for r in rows]),
            rates=np.array([r["rate"] for r in rows]),
            adaptive=any(word in type(kept.optimizer).__name__.lower() for word in ADAPTIVE),
            loss=np.array([r["loss"] for r in rows]), rank=self.scene.recorder.rank, tables=self._tables())

    def _tables(self) -> frozenset[str]:
        kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
        return frozenset(self.scene.module_paths.get(id(m), "") for model in self.scene.models
                         for m in model.modules() if isinstance(m, kinds))

    def _loss_scale(self, loss: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """What a GradScaler multiplied the loss by; 1 without one."""
        if self.scene.loss is None or loss.numel() != 1 or self.scene.loss.numel() != 1:
            return torch.ones_like(like)
        if loss.data_ptr() == self.scene.loss.data_ptr():  # the same value: nothing multiplied it
            return torch.ones_like(like)
        ratio = _scalar(loss, like) / _scalar(self.scene.loss, like)
        return torch.where(torch.isfinite(ratio) & (ratio > 0), ratio, torch.ones_like(ratio))

    def _read(self, *, wait: bool = False) -> None:
        for (key, kind, tag), values in self._late.arrived(wait=wait):
            course = self._courses.get(key)
            if course is None:
                continue
            if kind == "unclipped":
                course.unclipped, course.loss_scale = float(values[0]), float(values[1])
                continue
            n = len(tag["there"])
            scale = float(values[-2]) or 1.0
            if tag["weighed"]:
                course.weighed = (tag["there"], values[n: 2 * n])
            assert course.weighed is not None
            row = {"step": tag["step"], "there": tag["there"], "grads": values[:n] / scale,
                   "weights": course.weighed[1], "rate": tag["rate"], "loss": float(values[-1]),
                   "unclipped": course.unclipped, "loss_scale": course.loss_scale}
            course.rows.append(row)
            self._record(course, row)

    def _record(self, course: _Course, row: dict[str, Any]) -> None:
        squares: dict[str, float] = {}
        for i, norm in zip(row["there"], row["grads"], strict=True):
            top = course.tops[i]
            squares[top] = squares.get(top, 0.0) + float(norm) ** 2
        numbers = {"grad_norm": math.sqrt(float(np.sum(row["grads"] ** 2))), "learning_rate": row["rate"]}
        if len(self._courses) > 1:
            numbers = {}
        for top, value in list(squares.items())[:MODULES_IN_METRICS]:
            numbers[f"grad_norm/{top}"] = math.sqrt(value)
        self.scene.recorder.metrics(row["step"], numbers)


def _identity(gradients: list[torch.Tensor]) -> list[Any]:
    """Of gradients on a CPU: tells whether they are still the same, also where `.data` was written around autograd."""
    told: list[Any] = [(id(g), g._version) for g in gradients]
    for g in (gradients[0], gradients[len(gradients) // 2], gradients[-1]):
        if not g.is_sparse:
            flat = local(g).reshape(-1)
            told.append(flat[:: max(1, flat.numel() // 16)][:16].tolist())
    return told


def _rate(optimizer: torch.optim.Optimizer) -> float:
    """The largest learning rate of the groups; nan where it is kept on a device."""
    rates = [group.get("lr", math.nan) for group in optimizer.param_groups]
    known = [float(r) for r in rates if not isinstance(r, torch.Tensor) or r.device.type == "cpu"]
    return max(known, default=math.nan)


def _scalar(value: Any, like: torch.Tensor) -> torch.Tensor:
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return value.detach().reshape(1).to(device=like.device, dtype=torch.float32, non_blocking=True)
    number = value if isinstance(value, float) else math.nan
    return torch.full((1,), number, device=like.device, dtype=torch.float32)


def _modules(course: _Course) -> dict[str, list[int]]:
    """Modules with the places of their weights of two or more dimensions, in the order of the optimizer."""
    modules: dict[str, list[int]] = {}
    for i, (path, p) in enumerate(zip(course.paths, course.parameters, strict=True)):
        if p.ndim >= 2:
            modules.setdefault(path.rpartition(".")[0] or path, []).append(i)
    return modules


def _by_module(rows: list[dict[str, Any]], which: str, course: _Course, modules: dict[str, list[int]]) -> Any:
    out = np.full((len(rows), len(course.parameters)), np.nan)
    for t, row in enumerate(rows):
        out[t, row["there"]] = row[which]
    columns = [np.where(np.isnan(out[:, idx]).all(axis=1), np.nan, np.sqrt(np.nansum(out[:, idx] ** 2, axis=1)))
               for idx in modules.values()]
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0))
