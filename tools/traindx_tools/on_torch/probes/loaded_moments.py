"""Always on: are the second moments that were loaded those of the gradients that follow (T734)?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.on_torch.measures.moments import MOST_VALUES, NAMES, strange
from traindx_tools.on_torch.nonfinite.places import Place, here
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t734_moments_of_others

STEPS = 8
"""Over which squares of gradients are averaged."""
MOST_PARAMETERS = 200


@dataclass(eq=False)
class _Loaded:
    moments: dict[str, torch.Tensor] = field(default_factory=dict)
    squares: dict[str, torch.Tensor] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    parameters: dict[str, torch.Tensor] = field(default_factory=dict)
    steps: int = 0
    place: Place | None = None
    """Where the state was loaded."""


class LoadedMomentsProbe(TorchProbe):
    """Looks at the first steps after a state was loaded."""

    name = "loaded-moments"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._loaded: dict[int, _Loaded] = {}

    def next_look(self) -> int:
        """Every step, while one is looked at."""
        return 0 if self._loaded else self.NEVER

    def state_loaded(self, kind: str, owner: Any, state: Any, result: Any) -> None:
        """An optimizer's state: looked at from its next step on."""
        if kind == "optimizer" and isinstance(owner, torch.optim.Optimizer):
            self._loaded[id(owner)] = _Loaded(place=here())

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Adds up the squares of the gradients; before the first of these steps the moments are those that were
        loaded."""
        loaded = self._loaded.get(id(optimizer))
        if loaded is None:
            return
        if not loaded.steps:
            self._take(optimizer, loaded)
        if not loaded.moments:
            del self._loaded[id(optimizer)]
            return
        loaded.steps += 1
        for name, parameter in loaded.parameters.items():
            if parameter.grad is not None and parameter.grad.layout == torch.strided:
                square = _flat(parameter.grad).pow(2)
                loaded.squares[name] = loaded.squares[name] + square if name in loaded.squares else square
        if loaded.steps >= STEPS:
            del self._loaded[id(optimizer)]
            squares = {n: s.cpu() / loaded.steps for n, s in loaded.squares.items()}
            seen = strange({n: m.cpu() for n, m in loaded.moments.items()}, squares, loaded.shapes, loaded.steps)
            for finding in t734_moments_of_others.check(seen, type(optimizer).__name__, self.scene.step,
                                                        self.scene.recorder.rank, loaded.place):
                self.scene.recorder.finding(finding)

    def _take(self, optimizer: torch.optim.Optimizer, loaded: _Loaded) -> None:
        names = {id(p): n for m in self.scene.models for n, p in m.named_parameters()}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                state = optimizer.state.get(parameter, {})
                moment = next((state[n] for n in NAMES if isinstance(state.get(n), torch.Tensor)), None)
                if moment is None or moment.shape != parameter.shape or len(loaded.moments) >= MOST_PARAMETERS:
                    continue
                if type(parameter) not in (torch.Tensor, torch.nn.Parameter) or moment.layout != torch.strided:
                    continue
                name = names.get(id(parameter), f"parameter {len(loaded.moments)}")
                loaded.moments[name] = _flat(moment) / _remembered(group, state)
                loaded.shapes[name], loaded.parameters[name] = tuple(parameter.shape), parameter


def _flat(values: torch.Tensor) -> torch.Tensor:
    flat = values.detach().reshape(-1)
    return flat[::max(1, flat.numel() // MOST_VALUES)][:MOST_VALUES].to(torch.float64)


def _remembered(group: Any, state: Any) -> float:
    """The share of a full memory that Adam's count of steps stands for; 1 where there is no count."""
    betas, step = group.get("betas"), state.get("step")
    if not isinstance(betas, (tuple, list)) or step is None:
        return 1.0
    return max(1.0 - math.pow(float(betas[1]), float(step)), 1e-12)
