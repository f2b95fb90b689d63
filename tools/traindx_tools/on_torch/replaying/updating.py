"""The step of an optimizer, once more: on copies, with other groups, state or gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.replaying.conditions import Conditions
from traindx_tools.on_torch.snapshot.copying import optimizer_on
from traindx_tools.on_torch.snapshot.replay import KeptStep

RATES = {"learning-rate:times=0.1": 0.1, "learning-rate:times=10": 10.0}


@dataclass(frozen=True)
class Stepped:
    """Parameters afterwards, in the order of the kept ones, and the norm of what was added to them."""

    values: Sequence[torch.Tensor]
    norm: float
    finite: bool
    took: int = 1


def step_again(kept: KeptStep, gradients: Sequence[torch.Tensor | None], change: str,
               conditions: Conditions) -> Stepped:
    """The step with a change of the table, "" for none. Raises NotReplayable."""
    copies = [torch.nn.Parameter(conditions.lifted(v.detach()).clone(), p.requires_grad)
              for p, v in zip(kept.parameters, kept.values, strict=True)]
    before = [c.detach().clone() for c in copies]
    for copy, gradient in zip(copies, gradients, strict=True):
        copy.grad = None if gradient is None else gradient.to(copy.dtype).clone()
    groups, took = _groups(kept, copies, change)
    state = {c: {k: _copied(v, conditions) for k, v in s.items()} for c, s in zip(copies, kept.state, strict=True) if s}
    if change == "fresh-state":
        state, took = {}, len(state)
    try:
        again = optimizer_on(kept.optimizer, groups, state)
        again.step()
    except Exception as error:
        raise NotReplayable(f"the optimizer's step cannot be made again ({type(error).__name__}: {error})") from error
    after = [c.detach() for c in copies]
    with torch.no_grad():
        norm = norm_of([a - b for a, b in zip(after, before, strict=True)])
    return Stepped(after, norm, all(bool(torch.isfinite(a).all()) for a in after if a.is_floating_point()), took)


def norm_of(tensors: Sequence[torch.Tensor]) -> float:
    """The 2-norm of all values together, in double precision."""
    norms = [float(torch.linalg.vector_norm(t, dtype=_wide(t))) for t in tensors if t.numel()]
    return sum(n * n for n in norms) ** 0.5 if all(n < 1e150 for n in norms) else max(norms, key=_worst)


def _worst(norm: float) -> float:
    return float("inf") if norm != norm else norm


def _wide(tensor: torch.Tensor) -> torch.dtype:
    return torch.float64 if tensor.device.type == "cpu" or tensor.numel() < 2**20 else torch.float32


def _groups(kept: KeptStep, copies: Sequence[torch.Tensor], change: str) -> tuple[list[dict[str, Any]], int]:
    by_id = {id(p): c for p, c in zip(kept.parameters, copies, strict=True)}
    groups = [{**g, "params": [by_id[id(p)] for p in g["params"]]} for g in kept.groups]
    took = 1
    if change in RATES:
        for group in groups:
            group["lr"] = group["lr"] * RATES[change]
    if change == "no-decay":
        took = sum(bool(g.get("weight_decay")) for g in groups)
        for group in groups:
            group.update({"weight_decay": 0.0} if "weight_decay" in group else {})
    return groups, took


def _copied(value: Any, conditions: Conditions) -> Any:
    return conditions.lifted(value).clone() if isinstance(value, torch.Tensor) else value


def close(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor], tolerance: float) -> bool:
    """Whether tensors agree but for so much of their norm; what is not finite has to be so in both."""
    with torch.no_grad():
        for one, other in zip(first, second, strict=True):
            x, y = one.detach().double(), other.detach().double()
            finite = torch.isfinite(x)
            if not torch.equal(finite, torch.isfinite(y)):
                return False
            difference = torch.where(finite, x - y, torch.zeros_like(x)).norm()
            if float(difference) > tolerance * float(torch.where(finite, y, torch.zeros_like(y)).norm()) + 1e-30:
                return False
    return True
