"""Always on: notices the first loss or gradient that is not finite, without waiting for the device (T102)."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.on_torch.lagged import Lagged, capturing
from traindx_tools.on_torch.probe import TorchProbe
from traindx_tools.on_torch.rules import t102_nonfinite_seen

SMALL = 2**12
"""Elements of a gradient that is looked at in every step."""
BUDGET = {"cpu": 2**16}
"""Elements of large gradients that are looked at in one step, in turn, by the type of device."""
DEVICE_BUDGET = 2**22
SHARE = 0.003
"""Of the time, what looking at gradients may take: with very short steps not every step is looked at."""
LOSS, GRADIENT, SKIPPED = "loss", "gradient", "scaled gradient"


_DENSE = (torch.Tensor, torch.nn.Parameter)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The values that this process holds: the local part of a DTensor, the values of a sparse tensor."""
    if type(tensor) in _DENSE and tensor.layout is torch.strided and not tensor.is_complex():
        return tensor
    local: Any = getattr(tensor, "_local_tensor", tensor)
    values: torch.Tensor = local._values() if local.is_sparse else local
    return torch.view_as_real(values) if values.is_complex() else values


def witnesses(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """0-d tensors, one a device and dtype, that are finite where all values are.

    On a CPU the sum (a maximum norm is thirty times slower there), on a device the fused maximum norm. A sum of finite
    values overflows only beyond 1e38.
    """
    groups: dict[tuple[Any, Any], list[torch.Tensor]] = defaultdict(list)
    for tensor in tensors:
        if tensor.numel():
            groups[tensor.device, tensor.dtype].append(tensor)
    return [_witness(device.type, dtype, group) for (device, dtype), group in groups.items()]


def _witness(device: str, dtype: torch.dtype, group: list[torch.Tensor]) -> torch.Tensor:
    if device != "cpu":
        return torch.stack(list(torch._foreach_norm(group, math.inf))).amax()
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    return torch.stack([t.sum(dtype=wide) for t in group]).sum()


def _beginning(gradient: torch.Tensor, most: int) -> torch.Tensor:
    """So many of its values without a copy, where its memory allows that; else all of it."""
    if gradient.numel() <= most or type(gradient) is not torch.Tensor or not gradient.is_contiguous():
        return gradient
    return gradient.view(-1)[:most]


class NonfiniteSentinel(TorchProbe):
    """One number for each loss and each step's gradients, computed on the device and read when it has arrived."""

    name = "nonfinite"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self.backwards = 0
        """Calls of `backward` so far: the clock by which a second pass finds the place again."""
        self.tripped = False
        self._lagged = Lagged()
        self._last: dict[str, float] = {}
        self._parameters: list[torch.Tensor] = []
        self._large: list[torch.Tensor] = []
        self._turn = 0
        self._losses: tuple[int, list[float]] = (0, [])
        self._skipped = 0
        self._scaler = False
        self._next_look = 0.0
        self._clean = 0
        """The last backward pass after which every gradient that was looked at was finite."""

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """Sorts its parameters by size."""
        held = [p for group in optimizer.param_groups for p in group["params"]]
        self._parameters += [p for p in held if p.numel() <= SMALL]
        self._large += [p for p in held if p.numel() > SMALL]

    def before_backward(self, loss: torch.Tensor) -> None:
        """Sends the loss on its way: the scalar itself, or the largest of a few values."""
        seen = self.scene.loss
        if seen is None or self.tripped or seen.numel() > SMALL or not seen.is_floating_point():
            return
        if seen.is_cpu and type(seen) is torch.Tensor and seen.numel() == 1:
            self._arrived(LOSS, self.scene.step + 1, self.backwards, seen.item())
            return
        value = seen if seen.numel() == 1 else plain(seen).abs().amax()
        self._lagged.submit((LOSS, self.scene.step + 1, self.backwards), [plain(value)])
        self._read()

    def after_backward(self, loss: torch.Tensor) -> None:
        """Counts."""
        self.backwards += 1

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Sends a witness of the gradients on its way."""
        start = time.perf_counter()
        if self.tripped or start < self._next_look:
            return
        gradients = [plain(g) for g in self._gradients()]
        if gradients and not capturing(gradients[0].device):
            with torch.no_grad():
                for value in witnesses(gradients):
                    self._lagged.submit((GRADIENT, self.scene.step + 1, self.backwards - 1), [value])
        end = time.perf_counter()
        self._next_look = end + (end - start) / SHARE

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived."""
        self._skipped = 0
        if self._lagged:
            self._read()

    def scaler_updated(self, scaler: Any) -> None:
        """Counts the steps that a GradScaler skips one after the other: a scale that is too high needs only a few."""
        self._skipped += 1
        self._scaler = True
        if self._skipped > t102_nonfinite_seen.SKIPPED and not self.tripped:
            self._trip(SKIPPED, math.nan, self.scene.step + 1, self.backwards - 1)

    def finish(self) -> Iterable[Finding]:
        """Reads what is still on its way, and looks at every gradient: the last steps may not have been looked at."""
        everything = [p.grad for p in (*self._parameters, *self._large) if p.grad is not None]
        if everything and not self.tripped and not self._scaler:  # a scaler may just have skipped the last step
            with torch.no_grad():
                for value in witnesses(plain(g) for g in everything):
                    self._lagged.submit((GRADIENT, self.scene.step, self.backwards - 1), [value])
        self._read(wait=True)
        self._flush_loss(0)
        return ()

    def _gradients(self) -> Iterator[torch.Tensor]:
        chosen: Sequence[torch.Tensor] = self._parameters
        yield from (p.grad for p in chosen if p.grad is not None)
        left = BUDGET.get(self._large[0].device.type, DEVICE_BUDGET) if self._large else 0
        for _ in range(len(self._large)):
            gradient = self._large[self._turn % len(self._large)].grad
            self._turn += 1
            if gradient is not None:
                yield _beginning(gradient, left)
                left -= gradient.numel()
            if left <= 0:
                return

    def _read(self, *, wait: bool = False) -> None:
        for (what, step, backward), (value,) in self._lagged.ready(wait=wait):
            self._arrived(what, step, backward, value)

    def _arrived(self, what: str, step: int, backward: int, value: float) -> None:
        if self.tripped:
            return
        if what == LOSS:
            self._keep_loss(step, value)
        if math.isfinite(value):
            self._last[what] = value
            self._clean = backward if what == GRADIENT else self._clean
        else:
            self._trip(what, value, step, backward)

    def _keep_loss(self, step: int, value: float) -> None:
        """The mean over the backward passes of a step, written when the next step's first loss arrives."""
        if step != self._losses[0]:
            self._flush_loss(step)
        self._losses[1].append(value)

    def _flush_loss(self, step: int) -> None:
        before, values = self._losses
        if values:
            self.scene.recorder.metrics(before, {"loss": sum(values) / len(values)})
        self._losses = (step, [])

    def _trip(self, what: str, value: float, step: int, backward: int) -> None:
        self.tripped = True
        recorder = self.scene.recorder
        for finding in t102_nonfinite_seen.check(what, value, step, backward, self._last.get(what), recorder.rank,
                                                 clean=self._clean):
            recorder.finding(finding)
        later = "; the operation that did it is searched after this run" if self.scene.options.get("searched") else ""
        say(f"the {what} is {value} in step {step}{later}")
