"""What a step holds that is run once more as it is: what each module gave, and each parameter's gradient and update."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from traindx_tools.on_torch.replaying.kept import Passes
from traindx_tools.on_torch.replaying.passing import Pass
from traindx_tools.on_torch.snapshot.tape import Call, tensors_of

MOST = 400
"""Modules and parameters that are told, the most extreme ones."""


@dataclass(frozen=True)
class Output:
    """What a module gave: the largest magnitude and the standard deviation of its finite values."""

    module: str
    kind: str
    largest: float
    deviation: float
    bad: float
    """Share of values that are not finite."""


@dataclass(frozen=True)
class Gradient:
    """A parameter: the norms of its gradient and of its values."""

    parameter: str
    gradient: float
    value: float


@dataclass(frozen=True)
class Observed:
    """In the order of the forward pass, and of the parameters."""

    outputs: tuple[Output, ...]
    gradients: tuple[Gradient, ...]

    @property
    def first_bad(self) -> Output | None:
        """The first module whose output is not finite."""
        return next((o for o in self.outputs if o.bad), None)

    def to_json(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite as text."""
        return {k: [{n: str(v) if isinstance(v, float) and not math.isfinite(v) else v for n, v in row.items()}
                    for row in rows] for k, rows in asdict(self).items()}


class Observing(Pass):
    """One run with a look at what each module gives."""

    def __init__(self, passes: Passes, values: Mapping[int, torch.Tensor]) -> None:
        super().__init__(passes, values)
        self._outputs: list[Output] = []
        self._names: dict[int, str] = {}

    def observe(self, *, gradients: bool) -> Observed:
        """Raises NotReplayable."""
        gave = self.run(gradients=gradients)
        held = {id(o): c for o, c in self.copier.pairs(torch.Tensor)}
        told = [Gradient(self._names.get(i, "a parameter of no module"), _norm(g), _norm(held[i]))
                for i, g in gave.gradients.items() if i in held]
        return Observed(tuple(self._outputs[:MOST]), tuple(told[:MOST]))

    def call(self, entry: Call, args: Any, kwargs: Any) -> Any:
        """With a hook on each part of the copy."""
        copy = self.copier.module(entry.module)
        for name, original in entry.module.named_parameters():
            self._names.setdefault(id(original), name)
        hooks = [part.register_forward_hook(partial(self._saw, path or type(part).__name__))
                 for path, part in copy.named_modules()]
        try:
            return super().call(entry, args, kwargs)
        finally:
            for hook in hooks:
                hook.remove()

    def _saw(self, path: str, part: torch.nn.Module, _: Any, output: Any) -> None:
        for tensor in tensors_of(output):
            if tensor.is_floating_point() and tensor.numel():
                with torch.no_grad():
                    values = tensor.detach().float()
                    finite = torch.isfinite(values)
                    kept = values[finite]
                    largest = float(kept.abs().max()) if kept.numel() else math.nan
                    deviation = float(kept.std(unbiased=False)) if kept.numel() else math.nan
                    self._outputs.append(Output(path, type(part).__name__, largest, deviation,
                                                1.0 - kept.numel() / values.numel()))
                return


def _norm(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor.detach().float()))
