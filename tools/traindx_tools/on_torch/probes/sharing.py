"""Objects that should be two and are one: optimizers over the same parameters, models with the same memory (T341)."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.place_in_memory import place_in_memory
from traindx_tools.on_torch.nonfinite.places import here
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t341_one_object
from traindx_tools.on_torch.rules.t341_one_object import Shared
from traindx_tools.on_torch.structure import modules_of, unwrapped

WATCHED = 200
"""Steps of each optimizer that are looked at; what is shared is shared in every one."""
_Pair = tuple[int, int]


class SharingProbe(TorchProbe):
    """Counts, over the first steps, who steps what others hold and who is called beside the trained model."""

    name = "sharing"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._backwards = self._cleared = 0
        self._open: list[int] = []
        """Optimizers whose step runs now, outermost first."""
        self._nested: set[_Pair] = set()
        self._at: dict[int, tuple[int, int]] = {}
        """Backward passes and clearings before the last step of each optimizer."""
        self._turns: Counter[_Pair] = Counter()
        self._twice: Counter[_Pair] = Counter()
        self._last: int | None = None
        self._beside: Counter[int] = Counter()
        """Windows in which a model was called without gradients and a backward pass followed."""
        self._called: set[int] = set()
        self._steps = 0
        self._loads: dict[int, tuple[weakref.ref[Any], str, int, int, str | None]] = {}

    def next_look(self) -> int:
        """Nothing new is seen after the first steps."""
        return self.NEVER if self._steps > WATCHED else 0

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Who is called without gradients before the next backward pass."""
        if not torch.is_grad_enabled():
            self._called.add(id(model))

    def after_backward(self, loss: torch.Tensor) -> None:
        """What was called since the last step was called in a training step; evaluations have none."""
        self._backwards += 1
        self._beside.update(self._called)
        self._called.clear()

    def cleared(self, owner: Any) -> None:
        """Gradients are set back."""
        self._cleared += 1

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Who stepped before, and whether anything was computed since."""
        key = id(optimizer)
        self._nested |= {_pair(o, key) for o in self._open if o != key}
        self._open.append(key)
        now = self._backwards, self._cleared
        if len(self.scene.optimizers) > 1 and self._steps <= WATCHED:
            if self._last is not None and self._last != key:
                self._turns[_pair(self._last, key)] += 1
            for other, then in self._at.items():
                if other != key and then == now and self._share_a_gradient(other, optimizer):
                    self._twice[_pair(other, key)] += 1
        self._at[key] = now
        self._last = key

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """A step has ended, and those that ran inside of it."""
        key = id(optimizer)
        if key in self._open:
            del self._open[self._open.index(key):]
        self._steps += 1
        self._called.clear()

    def state_loaded(self, kind: str, owner: Any, state: Any, result: Any) -> None:
        """Whether it is the model's own memory."""
        if kind != "model" or not isinstance(state, Mapping):
            return
        own = {k: v for k, v in owner.state_dict().items() if isinstance(v, torch.Tensor) and v.numel()}
        if own and all(isinstance(state.get(k), torch.Tensor) and place_in_memory(state[k]) == place_in_memory(v)
                       for k, v in own.items()):
            held = self._loads.get(id(owner))
            place = here()
            line = f"{place.file}:{place.line}" if place is not None else None
            times = held[3] + 1 if held is not None and held[0]() is owner else 1
            self._loads[id(owner)] = weakref.ref(owner), type(owner).__name__, len(own), times, line

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        return list(t341_one_object.check([*self._optimizers(), *self._models(), *self._from_themselves()]))

    # ---- what was seen

    def _share_a_gradient(self, other: int, optimizer: torch.optim.Optimizer) -> bool:
        held = {id(p) for o in self.scene.optimizers if id(o) == other for p in _held(o)}
        return any(id(p) in held and p.grad is not None for p in _held(optimizer))

    def _optimizers(self) -> Iterator[Shared]:
        for one, other in combinations(self.scene.optimizers, 2):
            pair = _pair(id(one), id(other))
            count = len({id(p) for p in _held(one)} & {id(p) for p in _held(other)})
            if not count or pair in self._nested:
                continue
            names = [f"optimizer {self.scene.optimizers.index(o)} ({type(o).__name__})" for o in (one, other)]
            same = self._twice[pair] >= t341_one_object.TIMES
            yield Shared("same-gradient" if same else "optimizers", names[0], names[1], count,
                         self._twice[pair] if same else self._turns[pair], None, self.scene.step,
                         self.scene.recorder.rank)

    def _models(self) -> Iterator[Shared]:
        trained = {place_in_memory(p) for o in self.scene.optimizers for p in _held(o)}
        for one, other in combinations(self.scene.models, 2):
            a, b = (_parameters(m) for m in (one, other))
            if type(one) is not type(other) or not a or a != b or not set(a.values()) & trained:
                continue
            inside = [{id(m) for _, m in modules_of(model)} for model in (one, other)]
            if id(other) in inside[0] or id(one) in inside[1]:
                continue
            fixed = min((one, other), key=lambda m: -self._beside[id(m)])
            times = self._beside[id(fixed)]
            kind = "model" if times >= max(t341_one_object.TIMES, min(self._steps, WATCHED) // 2) else "view"
            first = self.scene.module_paths.get(id(one)) or type(one).__name__
            yield Shared(kind, first, f"another {type(other).__name__}", len(a),
                         times if kind == "model" else t341_one_object.TIMES, None, self.scene.step,
                         self.scene.recorder.rank)

    def _from_themselves(self) -> Iterator[Shared]:
        trained = {place_in_memory(p) for o in self.scene.optimizers for p in _held(o)}
        for owner, name, count, times, line in self._loads.values():
            model = owner()
            if model is not None and any(place_in_memory(p) in trained for p in unwrapped(model).parameters()):
                yield Shared("loaded-from-itself", name, "", count, times, line, self.scene.step,
                             self.scene.recorder.rank)


def _pair(a: int, b: int) -> _Pair:
    return (a, b) if a < b else (b, a)


def _held(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from (p for p in group["params"] if p.requires_grad)


def _parameters(model: torch.nn.Module) -> dict[str, tuple[int, int]]:
    """The memory of each parameter by its path."""
    return {f"{path}.{name}": place_in_memory(p) for path, module in modules_of(model)
            for name, p in module._parameters.items() if p is not None and p.numel()}
