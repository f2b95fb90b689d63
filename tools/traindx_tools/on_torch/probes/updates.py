"""What the optimizer's steps do to the weights, from a sample of their values (T205, T303, T304, T306)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.once import Once
from traindx_tools.on_torch.measures.parameters import local, positions, sampled
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import (
    t205_update_size,
    t303_never_moves,
    t304_update_rounded_away,
    t306_frozen_moves,
)
from traindx_tools.on_torch.rules.movement import Movement

RULES = (t205_update_size, t303_never_moves, t304_update_rounded_away, t306_frozen_moves)
Floats = NDArray[np.float64]
JUDGED_AT = 150
"""Optimizer steps after which a first judgement is written, in case the program is killed later."""


@dataclass
class _Track:
    """One parameter over the steps. Arrays are as long as its sample."""

    path: str
    parameter: torch.nn.Parameter
    start: Floats | None = None
    last: Floats | None = None
    before: Floats | None = None
    """The sample before the last measured step, and that step."""
    at: int = -1
    pushed: NDArray[np.bool_] | None = None
    steps: int = 0
    first_step: int = 0
    step_still: list[float] = field(default_factory=list)
    undone: list[bool] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    lr: float = 0.0
    trainable: bool = True
    """Whether it required a gradient in the steps that were measured: what it does later changes nothing of them."""

    def take(self, step: int, before: Floats, after: Floats, grad: Floats, lr: float, trainable: bool) -> None:
        """One measured step. A step in a warm-up that is below half of a later rate starts the comparison anew.

        So does a change of `trainable`: what a parameter did while it was trained says nothing of it once frozen.
        """
        if trainable is not self.trainable:
            self.trainable, self.start, self.before, self.last, self.steps = trainable, None, None, None, 0
        if trainable and (not grad.any() or not lr > 0):
            return
        if self.before is not None and step == self.at + 1 and self.last is not None:
            changed = bool((self.last != self.before).any())
            self.undone.append(changed and bool((before == self.before).all()))
        if self.start is None or lr > 2 * self.lr:
            self.start, self.pushed, self.steps, self.first_step = before, np.zeros(len(before), bool), 0, step
            self.step_still.clear()
        self.lr = max(lr, self.lr)
        self.before, self.last, self.at = before, after, step
        if lr < 0.5 * self.lr:
            return
        self.steps += 1
        push = grad != 0 if trainable else np.ones(len(before), bool)
        self.pushed = push if self.pushed is None else self.pushed | push
        self.step_still.append(float((before == after)[push].mean()) if push.any() else 1.0)
        size = float(np.linalg.norm(before))
        if size > 0:
            self.ratios.append(float(np.linalg.norm(after - before)) / size)
        del self.step_still[:-200], self.undone[:-200], self.ratios[:-200]

    def movement(self, rank: int) -> Movement | None:
        """What the rules judge; None before the first measured step."""
        if self.start is None or self.last is None or self.pushed is None or self.steps == 0:
            return None
        p, pushed = self.parameter, self.pushed
        same = self.start == self.last
        return Movement(
            path=self.path, dtype=str(p.dtype).removeprefix("torch."), numel=p.numel(), ndim=p.ndim,
            trainable=self.trainable, steps=self.steps, first_step=self.first_step, last_step=self.at,
            pushed=int(pushed.sum()), still=float(same[pushed].mean()) if pushed.any() else 0.0,
            step_still=float(np.median(self.step_still)) if self.step_still else 1.0,
            undone=float(np.mean(self.undone)) if len(self.undone) >= 3 else 0.0,
            ratio=float(np.median(self.ratios)) if self.ratios else math.nan,
            largest_ratio=max(self.ratios, default=math.nan),
            magnitude=float(np.median(np.abs(self.start[pushed]))) if pushed.any() else 0.0,
            growth=float(np.linalg.norm(self.last) / (np.linalg.norm(self.start) or math.inf)),
            moved=bool((~same).any()), lr=self.lr, rank=rank)


@dataclass
class _Held:
    """One optimizer and its parameters, with where each one's sample lies."""

    tracks: list[_Track]
    counts: list[tuple[int, int]]
    steps: int = 0
    before: torch.Tensor | None = None
    grads: torch.Tensor | None = None
    trainable: tuple[bool, ...] = ()
    """Which parameters required a gradient when `before` was sampled."""


class UpdateProbe(TorchProbe):
    """What a step does to the weights: relative size, rounding in 16 bits, weights that never move."""

    name = "updates"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._once = Once()
        self._cadence = Cadence.chosen(scene.options, "updates", 10, 50)
        self._held: dict[int, _Held] = {}
        self._late: Late[tuple[int, int, list[tuple[float, bool]]]] = Late()

    def next_look(self) -> int:
        """The next measured step."""
        return self.scene.step if self._late else self._cadence.next_due(self.scene.step)

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """Chooses the values to sample."""
        held = [p for group in optimizer.param_groups for p in group["params"] if p.numel() and not p.is_sparse]
        tracks = [_Track(self.scene.parameter_paths.get(id(p), f"parameter {i}"), p) for i, p in enumerate(held)]
        self._held[id(optimizer)] = _Held(tracks, [positions(local(p).numel()) for p in held])

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Samples weights and gradients."""
        held = self._held[id(optimizer)]
        held.steps = self.scene.step + 1 if self.scene.settled else held.steps + 1
        if self._cadence.due(held.steps - 1):
            with torch.no_grad():
                held.before = sampled([t.parameter for t in held.tracks], held.counts)
                held.grads = sampled([t.parameter.grad for t in held.tracks], held.counts)
                held.trainable = tuple(t.parameter.requires_grad for t in held.tracks)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Samples the weights again and sends both on their way; reads what has arrived."""
        held = self._held[id(optimizer)]
        if held.before is not None and held.grads is not None:
            with torch.no_grad():
                after = sampled([t.parameter for t in held.tracks], held.counts)
                tag = (id(optimizer), held.steps, list(zip(_rates(optimizer), held.trainable, strict=True)))
                self._late.send(tag, torch.stack([held.before, after, held.grads.to(after)]))
            held.before = held.grads = None
        self._read()
        if held.steps == JUDGED_AT:
            self._write()

    def finish(self) -> Iterable[Finding]:
        """Judges what moved and what did not."""
        self._read(wait=True)
        yield from self._once.new(self._findings())

    def movements(self) -> list[Movement]:
        """Every parameter that was measured."""
        tracks = (t for held in self._held.values() for t in held.tracks)
        return [m for t in tracks if (m := t.movement(self.scene.recorder.rank)) is not None]

    def _findings(self) -> Iterable[Finding]:
        movements = self.movements()
        for rule in RULES:
            yield from rule.check(movements)

    def _write(self) -> None:
        for finding in self._once.new(self._findings()):
            self.scene.recorder.finding(finding)

    def _read(self, *, wait: bool = False) -> None:
        for (key, step, states), values in self._late.arrived(wait=wait):
            held = self._held[key]
            start = 0
            for track, (_, count), (lr, trainable) in zip(held.tracks, held.counts, states, strict=True):
                part: Any = values[:, start: start + count]
                track.take(step, part[0], part[1], part[2], lr, trainable)
                start += count
            self._record(held, step)

    def _record(self, held: _Held, step: int) -> None:
        latest = [t.ratios[-1] for t in held.tracks if t.at == step and t.ratios and t.parameter.ndim >= 2]
        if latest:
            self.scene.recorder.metrics(step, {"update_ratio": float(np.median(latest))})


def _rates(optimizer: torch.optim.Optimizer) -> list[float]:
    """The learning rate of each parameter; 1 where a device holds it: then it is taken to be above 0."""
    out = []
    for group in optimizer.param_groups:
        lr = group.get("lr", 1.0)
        rate = 1.0 if isinstance(lr, torch.Tensor) and lr.device.type != "cpu" else float(lr)
        out += [rate for p in group["params"] if p.numel() and not p.is_sparse]
    return out
