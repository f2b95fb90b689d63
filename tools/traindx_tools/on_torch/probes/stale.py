"""What is evaluated holds what the trained model began with, and never moves (T343)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.held_values import Values, held_values, records
from traindx_tools.on_torch.nonfinite.places import here
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t343_stale_model
from traindx_tools.on_torch.rules.t343_stale_model import StaleModel
from traindx_tools.on_torch.structure import modules_of

WATCHED = 200
"""Steps in which calls with gradients are told apart; evaluations without gradients always are."""
LOOKS = 4
"""Evaluations after different steps at which the values of a copy are taken; and once more at the end."""
BESIDE = 0.5
"""Share of the steps from which a model that is called beside them is a part of the training."""
MOST = 0.5
"""Share of the trained model's tensors, those that move, which a copy has to hold."""
MOST_MODELS = 32
MOST_STEPS = 1_000
_Pairs = list[tuple[Values, Values]]


@dataclass(eq=False)
class _Model:
    """One called model. `first`: its values at its first call; `looks`: later ones."""

    model: torch.nn.Module
    first: list[Values]
    found_at: int
    looks: list[list[Values]] = field(default_factory=list)
    after: set[int] = field(default_factory=set)
    """Steps after which it was called."""
    calls: int = 0
    pending: int = 0
    """Calls in training mode with gradients since the last backward pass."""
    unclear: bool = False
    """Not all of those were followed by a backward pass: one of them may have been an evaluation."""
    line: tuple[str, int] | None = None


class StaleProbe(TorchProbe):
    """Holds the first values of each trained model against those of the other models that are called after steps."""

    name = "stale"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._models: dict[int, _Model] = {}

    def next_look(self) -> int:
        """Calls without gradients are told anyway."""
        return self.NEVER if self.scene.step > WATCHED else 0

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Who is called, and after which step."""
        if records():
            return
        seen = self._models.get(id(model))
        if seen is None:
            if len(self._models) >= MOST_MODELS:
                return
            seen = self._models[id(model)] = _Model(model, held_values(model), self.scene.step)
        if not self.scene.step:
            return
        if torch.is_grad_enabled() and getattr(model, "training", False) and self._is_trained(model):
            seen.pending += 1
            seen.unclear = seen.unclear or seen.pending > 1
            return
        seen.calls += 1
        if self.scene.step not in seen.after and len(seen.after) < MOST_STEPS:
            self._after_another_step(seen)

    def _after_another_step(self, seen: _Model) -> None:
        seen.after.add(self.scene.step)
        if len(seen.looks) < LOOKS:
            seen.looks.append(held_values(seen.model))
            if seen.line is None:
                place = here()
                seen.line = (place.file, place.line) if place is not None else None

    def before_backward(self, loss: torch.Tensor) -> None:
        """What was called with gradients is trained."""
        for seen in self._models.values():
            seen.pending = 0

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        return list(t343_stale_model.check(list(self._copies())))

    # ---- what was seen

    def _is_trained(self, model: torch.nn.Module) -> bool:
        held = {id(p) for o in self.scene.optimizers for group in o.param_groups for p in group["params"]}
        return any(id(p) in held for _, m in modules_of(model) for p in m._parameters.values())

    def _copies(self) -> Iterator[StaleModel]:
        trained = [m for m in self._models.values() if self._is_trained(m.model)]
        if any(m.unclear or m.pending for m in trained):
            return
        others = [m for m in self._models.values() if m.after and not any(m is one for one in trained)]
        for one in trained:
            moved = _moved(one) if not one.found_at else []
            if moved:
                yield from self._of(one, moved, [m for m in trained if m is not one and m.after], others)

    def _of(self, one: _Model, moved: _Pairs, siblings: list[_Model], others: list[_Model]) -> Iterator[StaleModel]:
        """The copies of one model, where its newer values are evaluated nowhere."""
        if any(_shaped_alike(m.looks[-1], moved) for m in siblings):
            return
        own = _held(one.looks, moved) if one.looks else []
        if one.after and len(own) < len(moved):
            return
        held = [(other, _held([*other.looks, held_values(other.model)], moved)) for other in others]
        if any(not copies and _shaped_alike(other.looks[-1], moved) for other, copies in held):
            return
        for seen, copies in [(one, own)] * bool(own) + held:
            if len(copies) >= MOST * len(moved) and len(seen.after) < BESIDE * self.scene.step:
                far = max(a.distance(b) for a, b in copies)
                name, kind = self._name(seen.model), "copy"
                if seen is one:
                    name, kind = f"{name}, with other tensors in the place of its parameters,", "replaced"
                yield StaleModel(name, self._name(one.model), len(copies), len(moved), far, seen.calls,
                                 len(seen.after), self.scene.step, kind, seen.line, self.scene.recorder.rank)

    def _name(self, model: torch.nn.Module) -> str:
        number = next((i for i, m in enumerate(self._models.values()) if m.model is model), 0)
        return f"{type(model).__name__} (model {number + 1})"


def _moved(one: _Model) -> _Pairs:
    """First and present values of what training moves."""
    now = held_values(one.model)
    return [(a, b) for a, b in zip(one.first, now, strict=False) if a.telling and not a.same(b)]


def _held(looks: list[list[Values]], moved: _Pairs) -> _Pairs:
    """The first values that are there in every look."""
    return [(a, b) for a, b in moved if all(any(v.same(a) for v in look) for look in looks)]


def _shaped_alike(values: list[Values], moved: _Pairs) -> bool:
    shapes = [v.shape for v in values]
    return sum(a.shape in shapes for a, _ in moved) >= MOST * len(moved)
