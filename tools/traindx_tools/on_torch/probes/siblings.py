"""Always on: frozen weights that were drawn as trained ones of their kind were, and stay so (T346)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t346_left_out_among_siblings
from traindx_tools.program.siblings import FEWEST, Weight, left_out

LISTENED = 3
"""Forward passes with gradients, of each model, in which every module is listened to."""
LOOKS = (0, 5, 20, 100, 500)
"""Steps before which it is noted which parameters require a gradient."""
MOST_MODELS, MOST_WEIGHTS = 16, 4_000


class SiblingsProbe(TorchProbe):
    """Takes mean and spread of each weight at the first call of its model and at the end."""

    name = "siblings"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._late: Late[int] = Late()
        self._first: dict[int, tuple[float, float]] = {}
        self._models: list[torch.nn.Module] = []
        self._heard: dict[int, int] = {}
        self._fed: set[int] = set()
        self._wanted: set[int] = set()

    def next_look(self) -> int:
        """The step before the next look; every call until all models were listened to."""
        if any(self._heard.get(id(m), 0) < LISTENED for m in self._models):
            return 0
        return next((k for k in LOOKS if k >= self.scene.step), self.NEVER)

    def model_found(self, model: torch.nn.Module) -> None:
        """Sends the first mean and spread of its weights."""
        if len(self._models) >= MOST_MODELS or all(p.requires_grad for p in model.parameters()):
            return  # what requires a gradient is another instrument's matter
        self._models.append(model)
        for _, p in list(_weights(model))[:MOST_WEIGHTS]:
            if id(p) not in self._first:
                self._late.send(id(p), _marks(p))
                self._read(wait=False)

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Listens to the modules in the first passes."""
        heard = self._heard.get(id(model), 0)
        if torch.is_grad_enabled() and heard < LISTENED and any(m is model for m in self._models):
            self._heard[id(model)] = heard + 1
            self.scene.inner.append(self._called)

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """Stops to listen."""
        if self._called in self.scene.inner:
            self.scene.inner.remove(self._called)

    def _called(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        own = [p for p in module._parameters.values() if p is not None]
        if own and any(isinstance(a, torch.Tensor) and a.requires_grad for a in (*args, *kwargs.values())):
            self._fed.update(id(p) for p in own)

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Which parameters require a gradient now."""
        if self.scene.step in LOOKS:
            self._wanted.update(id(p) for m in self._models for p in m.parameters() if p.requires_grad)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived."""
        self._read(wait=False)

    def finish(self) -> Iterable[Finding]:
        """Judges. Reads the device."""
        self._read(wait=True)
        for model in self._models:
            yield from t346_left_out_among_siblings.check(
                left_out(list(self._seen(model))), self.scene.step, self.scene.recorder.rank)

    def _seen(self, model: torch.nn.Module) -> Iterator[Weight]:
        for path, p in _weights(model):
            first = self._first.get(id(p))
            if first is None:
                continue
            now = tuple(float(v) for v in _marks(p))
            wanted = p.requires_grad or id(p) in self._wanted
            if now != first or not wanted:
                size = p.numel()
                yield Weight(path, tuple(p.shape), first[0] / size, (first[1] / size) ** 0.5, now != first,
                             id(p) in self._fed)

    def _read(self, *, wait: bool) -> None:
        for key, marks in self._late.arrived(wait=wait):
            self._first[key] = float(marks[0]), float(marks[1])


def _weights(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    for path, p in model.named_parameters():
        if type(p) is torch.nn.Parameter and p.ndim >= 2 and p.numel() >= FEWEST and p.layout == torch.strided \
                and p.device.type != "meta" and p.is_floating_point():
            yield path, p


def _marks(p: torch.nn.Parameter) -> torch.Tensor:
    """Sum and sum of squares, as float64."""
    wide = p.detach().to(torch.float64)
    return torch.stack([wide.sum(), wide.square().sum()])
