"""Passes against steps: what the loss of a window is divided by, and gradients that nobody steps (T213, T311)."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.window import WindowGradients, told
from traindx_tools.on_torch.nonfinite.places import here
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.probes.losses import bound
from traindx_tools.on_torch.rules import t213_window_divisor, t311_never_stepped
from traindx_tools.on_torch.rules.t213_window_divisor import Divisor
from traindx_tools.on_torch.rules.t311_never_stepped import Unstepped
from traindx_tools.program.timeline import Moment

MEASURED = 96
"""Backward passes whose value is compared with that of the loss."""
_BY_SIZE = ("Adam", "RMSprop", "Adagrad", "Adadelta", "Lion", "Lamb", "Muon", "Adafactor")


class CourseProbe(TorchProbe):
    """Counts that must agree over the whole run; judged at its end."""

    name = "course"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._late: Late[int] = Late()
        self._gradients = WindowGradients()
        self._ratios: list[float] = []
        self._windows: Counter[int] = Counter()
        self._passes = self._backwards = self._losses = self._forwards = 0
        self._value: torch.Tensor | None = None
        self._apart = True
        """Each pass so far had a batch of its own and one loss, a mean."""
        self._line: str | None = None
        self._scaled = self._stepping = False
        self._waiting: tuple[str, list[torch.Tensor]] | None = None
        """An optimizer that did not step so far, and those of its parameters that had gradients."""
        self._start: dict[int, tuple[torch.Tensor, float]] = {}

    def model_found(self, model: torch.nn.Module) -> None:
        """A number of each parameter, to know later whether it moved."""
        for p in model.parameters():
            if p.device.type == "cpu" and p.numel():
                self._start.setdefault(id(p), (p, _mark(p)))

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """Whose gradients are compared with those of one batch."""
        self._gradients.found(optimizer)

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._forwards += torch.is_grad_enabled()

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Remembers its value, until backward is called."""
        if self._backwards > MEASURED or not torch.is_grad_enabled():
            return
        self._losses += 1
        single = isinstance(value, torch.Tensor) and value.numel() == 1 and type(value) is torch.Tensor
        given = bound(name, args, kwargs)
        self._value = value.detach() if single and given.get("reduction") == "mean" else None
        if single:
            place = here()
            self._gradients.loss(name, given, value, (name, place.file, place.line) if place is not None else name)

    def before_backward(self, loss: torch.Tensor) -> None:
        """Sends both values on their way."""
        self._backwards += 1
        self._passes += 1
        self._gradients.before_backward()
        if self._backwards == 1:
            place = here()
            self._line = f"{place.file}:{place.line}" if place is not None else None
        if self._backwards > MEASURED:
            return
        alone = self._losses == 1 and self._forwards >= 1 and self._value is not None
        self._apart = self._apart and alone and not self._stepping
        if self._apart and self._value is not None and self.scene.loss is not None and loss.numel() == 1:
            pair = torch.stack([self.scene.loss.reshape(()).float(), self._value.reshape(()).float()])
            self._late.send(self._passes, pair)
        self._losses = self._forwards = 0
        self._value = None

    def after_backward(self, loss: torch.Tensor) -> None:
        """What the pass added; who could have stepped by now."""
        self._gradients.after_backward(self.scene.loss)
        if self._backwards == t311_never_stepped.BACKWARDS and not self.scene.optimizers:
            self._look_for_optimizers()

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Passes from here to its end are an optimizer's own (L-BFGS evaluates again)."""
        self._stepping = True
        self._gradients.before_step()

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """A window ends."""
        if self._backwards <= MEASURED:
            self._windows[self._passes] += 1
        self._passes = 0
        self._stepping = False
        self._read()

    def scaler_updated(self, scaler: Any) -> None:
        self._scaled = True
        self._passes = 0

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._read(wait=True)
        return list(self._findings())

    def _findings(self) -> Iterator[Finding]:
        self._gradients.read(wait=True)
        seen = self._gradients.measured() if len(self.scene.optimizers) == 1 else None
        yield from t213_window_divisor.check(self._divisor(), seen)
        if seen is not None:
            self.scene.program.remarks += told(seen)
            yield from t213_window_divisor.check_weights(seen, self._line, self.scene.step, self.scene.recorder.rank)
        yield from t311_never_stepped.check(self._unstepped())

    def _read(self, *, wait: bool = False) -> None:
        self._gradients.read(wait=wait)
        for _, (given, value) in self._late.arrived(wait=wait):
            if np.isfinite(given) and np.isfinite(value) and abs(value) > 1e-12:
                self._ratios.append(float(given / value))

    def _divisor(self) -> Divisor | None:
        if not self._apart or len(self.scene.optimizers) != 1 or not self._ratios or not self._windows:
            return None
        passes, count = self._windows.most_common(1)[0]
        middle = float(np.median(self._ratios))
        spread = max(abs(r - middle) for r in self._ratios) / max(abs(middle), 1e-12)
        kind = type(self.scene.optimizers[0]).__name__
        return Divisor(sum(self._windows.values()), passes, count / sum(self._windows.values()), middle, spread,
                       any(word in kind for word in _BY_SIZE), self.scene.program.timeline.count(Moment.CLIP) > 0,
                       self._line, self.scene.step, self.scene.recorder.rank)

    def _unstepped(self) -> Unstepped | None:
        if self.scene.optimizers or self._waiting is None:
            return None
        kind, held = self._waiting
        known = [p for p in held if id(p) in self._start]
        moved = sum(p.numel() for p in known if _mark(p) != self._start[id(p)][1])
        return Unstepped(self._backwards, 0, self._scaled, kind if known else "", sum(p.numel() for p in held), moved,
                         self._line, self.scene.recorder.rank)

    def _look_for_optimizers(self) -> None:
        """Once, after some passes without a step: later it may be gone, or its gradients set back."""
        for optimizer in [o for o in gc.get_objects() if issubclass(type(o), torch.optim.Optimizer)]:
            held = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            if held:
                self._waiting = type(optimizer).__name__, held
                return


def _mark(p: torch.Tensor) -> float:
    """A number that changes when the parameter does; CPU only, where reading costs no synchronisation."""
    return float(p.detach().reshape(-1)[:: max(1, p.numel() // 64)].double().square().sum())
