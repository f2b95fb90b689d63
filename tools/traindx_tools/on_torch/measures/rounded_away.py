"""Averages and sums whose increments are rounded away, seen among the operations of the loop itself.

An average is `a.lerp_(b, w)`, `a.mul_(d).add_(b, alpha=1 - d)`, `d * a + (1 - d) * b`, `a.add_(w * (b - a))`, one by
one or for lists of tensors; a sum is `a.add_(x)`, or `a + x` that is added to again in the next step. Of each, some
elements are compared before and after: what had to change and did not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.multiprocessing import reductions
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.place_in_memory import place_in_memory
from traindx_tools.on_torch.nonfinite import operations as ops
from traindx_tools.on_torch.nonfinite.places import Place, here

ELEMENTS = 1024
"""Of a tensor, the first ones, that are compared."""
APART = (0.2, 2.0)
"""Of its size, by which an average differs from what comes in where an element counts: what is far smaller moves in any
type."""
LEAST_KEPT = 0.5
MOST_NOTED = 2048
"""Operations of one look."""


@dataclass(frozen=True)
class Mixed:
    """What one line did to tensors of one type. `weight`: of what comes into an average."""

    kind: str
    dtype: str
    weight: float
    place: Place | None


@dataclass(frozen=True)
class _Scaled:
    before: torch.Tensor
    kept: float


@dataclass(frozen=True)
class _Difference:
    """`weight * (more - less)`, by where both lie and what they hold."""

    more: tuple[int, int]
    less: tuple[int, int]
    values: tuple[torch.Tensor, torch.Tensor]
    weight: float = 1.0


class RoundedAway(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Compares while it is open; results are the program's own."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._on_stack = self._open = False
        self.late: Late[Mixed] = Late()
        self.clear()

    def clear(self) -> None:
        """A new look begins."""
        self._scaled: dict[tuple[int, int], _Scaled] = {}
        self._differences: dict[tuple[int, int], _Difference] = {}
        self._sums: dict[int, Any] = {}
        self._noted = 0

    def open(self) -> None:
        """Looks from here on; above another's mode it is not put."""
        if not self._on_stack and torch._C._len_torch_dispatch_stack() == 0:
            self.__enter__()  # type: ignore[no-untyped-call]
            self._on_stack = True
        self._open = self._on_stack

    def close(self) -> None:
        """Looks no more. Under another's mode it stays where it is and does nothing."""
        self._open = False
        if self._on_stack and _get_current_dispatch_mode() is self:
            self._on_stack = False
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        """Runs the operation, and compares where it is one of those."""
        named = kwargs or {}
        name = ops.base_name(func).removeprefix("_foreach_")
        if not self._open or name not in _KINDS or self._noted >= MOST_NOTED:
            return func(*args, **named)
        before = self._guarded(lambda: [_sample(a) for a in _several(args[0])]) or []
        output = func(*args, **named)
        self._guarded(lambda: self._compare(name, args, named, before, output))
        return output

    def _guarded(self, call: Any) -> Any:
        try:
            return call()
        except Exception:  # noqa: BLE001 - a tensor of an unknown kind costs this look, not the training
            self._open = False
            return None

    def _compare(self, name: str, args: Any, kwargs: Any, before: list[Any], output: Any) -> None:
        results = _several(args[0]) if name.endswith("_") else _several(output)
        others = _several(args[1]) if len(args) > 1 else []
        for number, (was, given, result) in enumerate(zip(before, _several(args[0]), results, strict=False)):
            if was is None or not isinstance(result, torch.Tensor) or result.dtype != given.dtype:
                continue
            self._noted += 1
            other = others[number if len(others) > 1 else 0] if others else None
            step = {"mul": self._multiplied, "lerp": self._mixed, "add": self._added, "sub": self._subtracted}
            step[name.rstrip("_")](given, was, result, other, args, kwargs)

    def _multiplied(self, given: Any, was: Any, result: Any, other: Any, args: Any, kwargs: Any) -> None:
        kept = _number(other)
        difference = self._differences.get(place_in_memory(given))
        if difference is not None and kept is not None and abs(kept) < LEAST_KEPT:
            self._differences[place_in_memory(result)] = replace(difference, weight=difference.weight * kept)
        elif kept is not None and LEAST_KEPT < kept < 1:
            self._scaled[place_in_memory(result)] = _Scaled(was, kept)

    def _mixed(self, given: Any, was: Any, result: Any, other: Any, args: Any, kwargs: Any) -> None:
        weight = _number(args[2] if len(args) > 2 else kwargs.get("weight"))
        incoming = _sample(other)
        if weight is not None and incoming is not None and 0 < weight < LEAST_KEPT:
            self._send("average", weight, was, _sample(result), incoming)

    def _added(self, given: Any, was: Any, result: Any, other: Any, args: Any, kwargs: Any) -> None:
        alpha, incoming = _number(kwargs.get("alpha", 1)), _sample(other)
        if incoming is None or alpha is None or given.requires_grad or self._moved_towards(given, result, other, alpha):
            return
        for one, more in ((given, incoming), (other, was)):
            scaled = self._scaled.get(place_in_memory(one))
            if scaled is not None and scaled.before.shape == more.shape:
                weight = 1 - scaled.kept
                wide = more.to(torch.float64) * (alpha / weight if one is given else 1 / weight)
                self._send("average", weight, scaled.before, _sample(result), wide)
                return
        if result is given or self._is_sum(given):
            self._send("sum", alpha, was, _sample(result), incoming)
        storage = result.untyped_storage()
        self._sums[storage._cdata] = reductions.StorageWeakRef(storage)  # type: ignore[no-untyped-call]

    def _subtracted(self, given: Any, was: Any, result: Any, other: Any, args: Any, kwargs: Any) -> None:
        alpha, less = _number(kwargs.get("alpha", 1)), _sample(other)
        if alpha is None or less is None or self._moved_towards(given, result, other, -alpha):
            return
        if alpha == 1 and result is not given and less.shape == was.shape:
            self._differences[place_in_memory(result)] = _Difference(
                place_in_memory(given), place_in_memory(other), (was, less))

    def _moved_towards(self, given: Any, result: Any, other: Any, alpha: float) -> bool:
        """Whether it is `given + alpha * difference` where that leads a part of the way from `given` to another."""
        difference = self._differences.get(place_in_memory(other)) if isinstance(other, torch.Tensor) else None
        if difference is None:
            return False
        weight = alpha * difference.weight
        at = place_in_memory(given)
        if at == difference.less and 0 < weight < LEAST_KEPT:
            incoming, old = difference.values
        elif at == difference.more and -LEAST_KEPT < weight < 0:
            old, incoming = difference.values
        else:
            return False
        self._send("average", abs(weight), old, _sample(result), incoming)
        return True

    def _is_sum(self, tensor: torch.Tensor) -> bool:
        held = self._sums.get(tensor.untyped_storage()._cdata)
        return held is not None and not held.expired() and tensor.grad_fn is None

    def _send(self, kind: str, weight: float, was: Any, now: Any, incoming: Any) -> None:
        if now is None or not was.shape == now.shape == incoming.shape:
            return
        old, new = was.to(torch.float64), incoming.to(torch.float64)
        far = (new - old).abs()
        away = (far > APART[0] * old.abs()) & (far < APART[1] * old.abs()) if kind == "average" else new != 0
        counts = away & torch.isfinite(old) & torch.isfinite(new) & (old != 0)
        stuck = counts & (now == was)
        self.late.send(Mixed(kind, str(was.dtype).removeprefix("torch."), weight, here()),
                       torch.stack([counts.sum(), stuck.sum(), (now != was).sum()]).to(torch.float64))


_KINDS = frozenset({"mul", "mul_", "lerp", "lerp_", "add", "add_", "sub", "sub_"})


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _sample(value: Any) -> torch.Tensor | None:
    """A copy of the first elements; None for what is no plain tensor of floating numbers."""
    if not isinstance(value, torch.Tensor) or type(value) not in (torch.Tensor, torch.nn.Parameter):
        return None
    if not value.is_floating_point() or value.layout != torch.strided or not value.is_contiguous() \
            or not value.numel() or value.device.type == "meta":
        return None
    return value.detach().reshape(-1)[:ELEMENTS].clone()


def _number(value: Any) -> float | None:
    """A Python number, or a tensor of one that lies in the host's memory."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, torch.Tensor) and value.ndim == 0 and value.device.type == "cpu":
        return float(value)
    return None


def each(late: Late[Mixed], *, wait: bool) -> Iterator[tuple[Mixed, int, int, int]]:
    """What has arrived: elements that had to change, those of them that did not, and all that changed."""
    for mixed, numbers in late.arrived(wait=wait):
        yield mixed, int(numbers[0]), int(numbers[1]), int(numbers[2])
