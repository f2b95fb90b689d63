"""What the layers take, in a few sampled training steps (T501 to T508)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures import activations as measure
from traindx_tools.on_torch.measures.batch import named_tensors
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.once import Once
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import (
    t501_dead_units,
    t502_saturation,
    t503_samples_alike,
    t504_scale_by_depth,
    t505_half_headroom,
    t506_attention_entropy,
    t507_running_statistics,
    t508_evaluation_inputs,
)
from traindx_tools.on_torch.rules.activations import AttentionCourse, Courses, LayerCourse, NormCourse

RULES = (t501_dead_units, t502_saturation, t503_samples_alike, t504_scale_by_depth, t505_half_headroom,
         t506_attention_entropy, t507_running_statistics, t508_evaluation_inputs)
LAYERS = ("layer", "half", "output")
KEPT, MOST_MODULES = 128, 400
JUDGED_AT = 200
GIVEN_LOOKS = 8
"""Calls of a model that is not trained, in which its BatchNorm layers are looked at."""
_CONVOLUTIONS = (torch.nn.modules.conv._ConvNd,)
_LAYERS = (torch.nn.Linear, *_CONVOLUTIONS)
_NORMS = torch.nn.modules.batchnorm._BatchNorm


@dataclass
class _Place:
    """One layer, attention or BatchNorm over the sampled steps."""

    kind: str
    path: str
    after: str = ""
    function: str = ""
    dtype: str = ""
    rows: int = 0
    fewest: int = 1 << 30
    extra: Any = None
    steps: deque[int] = field(default_factory=lambda: deque(maxlen=KEPT))
    values: deque[Any] = field(default_factory=lambda: deque(maxlen=KEPT))
    units: int = 0
    same_input: bool = True
    fresh: bool = True
    """Of a BatchNorm that is not trained: its statistics are those that it was made with."""
    ever: torch.Tensor | None = None
    """(units,): whether a unit was ever other than 0; on its device."""


class ActivationProbe(TorchProbe):
    """Dead and saturated units, samples that look alike, scale by depth, float16 headroom, BatchNorm statistics."""

    name = "activations"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._once = Once()
        self._cadence = Cadence.chosen(scene.options, "activations", 4, 50)
        self._often = Cadence(12, 50, thins=True)
        self._calls: Counter[int] = Counter()
        self._evaluations: Counter[int] = Counter()
        self._places: dict[tuple[int, str], _Place] = {}
        self._late: Late[list[tuple[tuple[int, str], int]]] = Late()
        self._sent: list[tuple[tuple[int, str], int]] = []
        self._parts: list[torch.Tensor] = []
        self._before = ""
        self._owed = False
        """Whether an evaluation was looked at: the next training batch is what its BatchNorm layers compare with."""
        self._mode_seen = False
        """Whether a module was called, in this call, that acts otherwise in eval mode."""
        self._frozen: set[int] = set()
        """BatchNorm layers that are in eval mode while their model trains: frozen on purpose."""
        self._only_called: Counter[int] = Counter()
        """Evaluations of models that no training call was seen of: what they say is used, and they are not trained."""

    def next_look(self) -> int:
        """The next sampled step."""
        return self.scene.step if self._late else self._cadence.next_due(self.scene.step)

    # ---- the moments

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Looks into the modules of this call, if it is a training call that is sampled."""
        if not any(m is model for m in self.scene.models):
            return
        if not torch.is_grad_enabled():
            self._evaluated(model)
            return
        self._calls[id(model)] += 1
        self._mode_seen = False
        if self._look in self.scene.inner or self._look_at_training_norms in self.scene.inner:
            return
        if self.scene.due(self._cadence, self._calls[id(model)] - 1):
            self._sent, self._parts, self._before = [], [], ""
            self.scene.inner.append(self._look)
        elif self._owed and model.training:
            self._sent, self._parts = [], []
            self.scene.inner.append(self._look_at_training_norms)

    def _evaluated(self, model: torch.nn.Module) -> None:
        """An evaluation in eval mode, of a model that is being trained: its BatchNorm layers are looked at."""
        if model.training:
            return
        if not self._calls[id(model)]:
            self._only_called[id(model)] += 1
            if self._only_called[id(model)] <= GIVEN_LOOKS and self._look_at_given not in self.scene.inner:
                self._sent, self._parts = [], []
                self.scene.inner.append(self._look_at_given)
            return
        self._evaluations[id(model)] += 1
        if self._often.due(self._evaluations[id(model)] - 1) and self._look_at_norms not in self.scene.inner:
            self._sent, self._parts, self._owed = [], [], True
            self.scene.inner.append(self._look_at_norms)

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """Looks at the output, and sends all numbers of this call on their way together."""
        if not self.scene.inner:
            return
        if self._look_at_norms in self.scene.inner:
            self.scene.inner.remove(self._look_at_norms)
        elif self._look_at_given in self.scene.inner:
            self.scene.inner.remove(self._look_at_given)
        elif self._look_at_training_norms in self.scene.inner:
            self.scene.inner.remove(self._look_at_training_norms)
            self._owed = False
        elif self._look in self.scene.inner:
            self.scene.inner.remove(self._look)
            self._look_at_output(model, output)
        if self._parts:
            device = self._parts[0].device
            self._late.send(self._sent, torch.cat([p.to(device, non_blocking=True) for p in self._parts]))
            self._sent, self._parts = [], []

    def _look_at_output(self, model: torch.nn.Module, output: Any) -> None:
        tensor = next((t for _, t in named_tensors(output) if t.ndim >= 2 and t.is_floating_point()), None)
        if tensor is not None and tensor.requires_grad and tensor.numel():
            with torch.no_grad():
                self._take(model, "output", tensor, False)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived; a first judgement in case the program is killed later."""
        self._read()
        if self.scene.step == JUDGED_AT and optimizer is self.scene.optimizers[0]:
            for finding in self._once.new(self._findings()):
                self.scene.recorder.finding(finding)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._read(wait=True)
        yield from self._once.new(self._findings())

    # ---- looking

    def _look(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        x = args[0] if args else None
        if type(x) is not torch.Tensor or not x.is_floating_point() or not x.numel() or _wrapped(x):
            return
        with torch.no_grad():
            if isinstance(module, _LAYERS):
                if x.requires_grad and x.ndim >= 2:
                    self._take(module, "layer", x, isinstance(module, _CONVOLUTIONS) and x.ndim > 2)
                self._before = self._path(module)
                if isinstance(output, torch.Tensor) and output.dtype == torch.float16 and output.ndim >= 2:
                    self._take(module, "half", output, isinstance(module, _CONVOLUTIONS) and output.ndim > 2)
            elif isinstance(module, _NORMS):
                self._trained_norm(module, x)
            elif isinstance(module, torch.nn.Dropout) and x.ndim >= 3 and measure.function_of(x) == "softmax":
                place = self._place(module, "attention")
                if place is not None:
                    place.extra = x.shape[-1]
                    self._send(module, "attention", measure.entropy_of(x))
        self._mode_seen = self._mode_seen or _acts_by_mode(module)

    def _look_at_training_norms(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any],
                                output: Any) -> None:
        x = args[0] if args else None
        if isinstance(module, _NORMS) and type(x) is torch.Tensor and x.numel() and not _wrapped(x):
            with torch.no_grad():
                self._trained_norm(module, x)
        self._mode_seen = self._mode_seen or _acts_by_mode(module)

    def _trained_norm(self, module: Any, x: torch.Tensor) -> None:
        """A BatchNorm that is called while its model trains."""
        if module.running_mean is None or x.ndim < 2:
            return
        if module.training:
            self._norm(module, x)
        elif any(m.training for m in self.scene.models):
            self._frozen.add(id(module))
            self._norm(module, x, "given")

    def _look_at_given(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any],
                       output: Any) -> None:
        x = args[0] if args else None
        if isinstance(module, _NORMS) and not module.training and module.running_mean is not None and (
                type(x) is torch.Tensor and x.ndim >= 2 and x.numel() and not _wrapped(x)):
            with torch.no_grad():
                self._norm(module, x, "given")

    def _look_at_norms(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any],
                       output: Any) -> None:
        x = args[0] if args else None
        if isinstance(module, _NORMS) and not module.training and module.running_mean is not None and (
                type(x) is torch.Tensor and x.ndim >= 2 and x.numel() and not _wrapped(x)):
            with torch.no_grad():
                self._norm(module, x, "evaluated")

    def _take(self, module: torch.nn.Module, kind: str, x: torch.Tensor, convolution: bool) -> None:
        place = self._place(module, kind)
        if place is None:
            return
        rows = measure.features_last(x, convolution)
        place.function = place.function or measure.function_of(x)
        place.after = place.after or self._before
        place.dtype = str(x.dtype).removeprefix("torch.")
        place.rows += len(rows)
        place.fewest = min(place.fewest, x.shape[0] if kind == "output" else len(rows))
        alive = (rows != 0).any(0)
        place.ever = alive if place.ever is None or place.ever.shape != alive.shape else place.ever | alive
        place.units = len(alive)
        numbers = measure.numbers_of(rows, place.function)
        if kind == "half":
            numbers[1] = x.detach().abs().amax()
        self._send(module, kind, torch.cat([numbers, (~place.ever).sum().reshape(1)]))

    def _norm(self, module: Any, x: torch.Tensor, kind: str = "norm") -> None:
        place = self._place(module, kind)
        if place is not None:
            place.extra = (module.momentum, x.numel() // x.shape[1])
            place.fresh = place.fresh and kind == "given" and _as_made(module)
            place.same_input = place.same_input and not self._mode_seen
            self._send(module, kind, measure.distance_of_statistics(x, module.running_mean, module.running_var))

    def _place(self, module: torch.nn.Module, kind: str) -> _Place | None:
        key = (id(module), kind)
        if key not in self._places:
            if len(self._places) >= MOST_MODULES:
                return None
            self._places[key] = _Place(kind, self._path(module))
        return None if any(k == key for k, _ in self._sent) else self._places[key]

    def _send(self, module: torch.nn.Module, kind: str, numbers: torch.Tensor) -> None:
        self._sent.append(((id(module), kind), self.scene.step + 1))
        self._parts.append(numbers.float())

    def _path(self, module: torch.nn.Module) -> str:
        return self.scene.module_paths.get(id(module), type(module).__name__)

    # ---- reading

    def _read(self, *, wait: bool = False) -> None:
        for sent, values in self._late.arrived(wait=wait):
            start = 0
            for key, step in sent:
                place = self._places[key]
                length = len(measure.NUMBERS) + 1 if place.kind in LAYERS else 2
                place.steps.append(step)
                place.values.append(values[start: start + length])
                start += length

    def courses(self) -> Courses:
        """What was seen so far, in the order of the calls."""
        rank = self.scene.recorder.rank
        able = [p for key, p in self._places.items() if p.steps and self._able(p, key[0])]
        pairs = {k: [(p, np.array(p.values)) for p in able if p.kind == k]
                 for k in ("attention", "norm", "evaluated", "given")}
        return Courses(
            layers=tuple(_layer(p, rank) for p in able if p.kind in LAYERS),
            attention=tuple(AttentionCourse(p.path, tuple(p.steps), v[:, 0], v[:, 1], p.extra, rank)
                            for p, v in pairs["attention"]),
            norms=tuple(NormCourse(p.path, tuple(p.steps), v[:, 0], v[:, 1], p.extra[0], p.extra[1], rank,
                                   kind == "evaluated", p.same_input, kind == "given")
                        for kind in ("norm", "evaluated", "given") for p, v in pairs[kind]))

    def _able(self, place: _Place, module: int) -> bool:
        """Whether a place is judged: statistics that are given are those of a layer that is never trained here."""
        if place.kind == "given":
            return (module, "norm") not in self._places and not place.fresh and self.scene.step > 0
        return place.kind != "evaluated" or self._judged(module)

    def _judged(self, module: int) -> bool:
        """Whether a BatchNorm that is evaluated learns its statistics here: one that is frozen was given them."""
        return (module, "norm") in self._places and module not in self._frozen

    def _findings(self) -> Iterable[Finding]:
        seen = self.courses()
        for rule in RULES:
            yield from rule.check(seen)


def _layer(p: _Place, rank: int) -> LayerCourse:
    columns = dict(zip((*measure.NUMBERS, "dead"), np.array(p.values).T, strict=True))
    return LayerCourse(
        path=p.path, after=p.after, function=p.function, dtype=p.dtype, steps=tuple(p.steps), rms=columns["rms"],
        largest=columns["largest"], spread=columns["spread"], saturated=columns["saturated"], units=p.units,
        dead=int(columns["dead"][-1]), rows=p.rows, fewest_rows=p.fewest, rank=rank, kind=p.kind)


def _as_made(norm: Any) -> bool:
    """Whether the running statistics are those of a layer that never saw a batch."""
    return bool((norm.running_mean == 0).all()) and bool((norm.running_var == 1).all())


def _acts_by_mode(module: torch.nn.Module) -> bool:
    """Whether a module that was called in training does something else in eval mode."""
    if isinstance(module, torch.nn.modules.dropout._DropoutNd):
        return module.training and module.p > 0
    return isinstance(module, _NORMS) and module.training


def _wrapped(x: torch.Tensor) -> bool:
    """A tensor of functorch (vmap, grad): it must not outlive its transform."""
    check: Any = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", None)
    return check is not None and bool(check(x))
