"""How a scalar loss was put together: every operation on single numbers of one step is noted, then read backwards.

`loss = reconstruction + beta * kl` is two additions of zero-dimensional tensors; a weighted sum is taken apart at
additions, subtractions and constant factors, and whatever else made a number (a mean, a cross entropy) is a term.
Only zero-dimensional tensors are taken apart: the algebra inside a term is left whole.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from traindx_tools.on_torch.loss_terms.names import name_at
from traindx_tools.on_variables.roots import is_users

MOST_RECORDS = 20_000
MOST_TERMS = 64

_ADD = frozenset({"add", "__add__", "__radd__", "add_", "__iadd__"})
_SUB = frozenset({"sub", "__sub__", "sub_", "__isub__", "subtract"})
_RSUB = frozenset({"rsub", "__rsub__"})
_MUL = frozenset({"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"})
_DIV = frozenset({"div", "__truediv__", "div_", "__itruediv__", "__div__", "true_divide"})
_NEG = frozenset({"neg", "__neg__", "negative"})
_SAME = frozenset({"mean", "sum", "to", "float", "double", "squeeze", "unsqueeze", "view", "reshape", "clone", "half",
                   "contiguous", "bfloat16", "cuda", "requires_grad_"})  # fmt: skip
"""Functions that hand a single number on as it is."""
_MADE = frozenset({"zeros", "ones", "full", "tensor", "as_tensor", "scalar_tensor", "empty", "zeros_like", "ones_like",
                   "full_like", "new_zeros", "new_ones", "new_full", "new_tensor"})  # fmt: skip
"""Functions that make a value from none."""


@dataclass(frozen=True)
class Term:
    """One term: its name, the user's line, its factor in the loss, and the tensor (with its graph, until dropped)."""

    name: str
    file: str
    line: int
    factor: float
    tensor: torch.Tensor
    constant: bool = False
    """Made from no other value: the 0 that a sum starts with, or what stands in for a term that is switched off."""

    @property
    def has_graph(self) -> bool:
        """Whether a gradient can flow through it."""
        return self.tensor.requires_grad


@dataclass(frozen=True)
class _Record:
    index: int
    function: str
    operands: tuple[Any, ...]
    result: torch.Tensor
    file: str
    line: int


class LossTrace(TorchFunctionMode):
    """While it is active, notes what made each single number. Results are those of the program."""

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[int, list[_Record]] = {}
        self._count = 0
        self.resting = False
        """Nothing is noted any more; the mode itself is left where it was entered, outside any torch call."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if self.resting:
            return result
        if isinstance(result, torch.Tensor) and self._count < MOST_RECORDS and result.numel() == 1 and (
                result.is_floating_point()):
            self._note(func, (*args, *(kwargs or {}).values()), result)
        elif isinstance(result, torch.Tensor) and getattr(func, "__name__", "") == "stack":
            self._note(func, tuple(args[0]) if args else (), result)
        return result

    def _note(self, func: Any, operands: tuple[Any, ...], result: torch.Tensor) -> None:
        frame: Any = sys._getframe(2)
        while frame is not None and not is_users(frame.f_code.co_filename):
            frame = frame.f_back
        place = ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        self._count += 1
        name = str(getattr(func, "__name__", ""))
        self._records.setdefault(id(result), []).append(_Record(self._count, name, operands, result, *place))

    def terms(self, loss: torch.Tensor) -> tuple[Term, ...]:
        """The terms of a loss, in the order in which they were added; () where the loss was not seen being made."""
        top = self._latest(loss, math.inf)
        if top is None:
            return ()
        found: list[Term] = []
        for factor, record in self._parts(1.0, loss, math.inf, (top.file, top.line), 0):
            if len(found) >= MOST_TERMS:
                break
            same_line = record.line == top.line and record is not top
            name = record.function if same_line else name_at(record.file, record.line) or record.function
            found.append(Term(name, record.file, record.line, factor, record.result, record.function in _MADE))
        return tuple(_distinct(found))

    def _latest(self, tensor: Any, before: float) -> _Record | None:
        records = self._records.get(id(tensor), ()) if isinstance(tensor, torch.Tensor) else ()
        return next((r for r in reversed(records) if r.index < before), None)

    def _parts(self, factor: float, tensor: Any, before: float, user: tuple[str, int],
               depth: int) -> Iterator[tuple[float, _Record]]:
        """`user`: the line that the tensor is used on. A factor on a line of its own belongs to the term itself."""
        record = self._latest(tensor, before)
        if record is None or depth > 200:
            return
        here = record.file, record.line
        inner = [p for weight, operand in self._operands(record)
                 for p in self._parts(factor * weight, operand, record.index, here, depth + 1)]
        if not inner or (len(inner) == 1 and (here != user or record.function in _SAME)):
            yield factor, record
        else:
            yield from inner

    def _operands(self, record: _Record) -> Iterator[tuple[float, Any]]:
        """(factor, operand) for each tensor that a record is a weighted sum of; nothing where it is a term itself."""
        name, operands = record.function, record.operands
        first = operands[0] if operands else None
        second = operands[1] if len(operands) > 1 else None
        if name in _ADD:
            yield from ((1.0, o) for o in (first, second) if self._known(o, record))
        elif name in _SUB:
            yield from ((w, o) for w, o in ((1.0, first), (-1.0, second)) if self._known(o, record))
        elif name in _RSUB:
            yield from ((w, o) for w, o in ((-1.0, first), (1.0, second)) if self._known(o, record))
        elif name in _NEG and self._known(first, record):
            yield -1.0, first
        elif name in _MUL:
            for value, other in ((first, second), (second, first)):
                if self._known(value, record) and (factor := self._constant(other, record)) is not None:
                    yield factor, value
                    return
        elif name in _DIV and self._known(first, record) and (divisor := self._constant(second, record)):
            yield 1.0 / divisor, first
        elif name in _SAME:
            yield from self._handed_on(name, first, record)

    def _handed_on(self, name: str, first: Any, record: _Record) -> Iterator[tuple[float, Any]]:
        stacked = self._latest(first, record.index)
        if stacked is not None and stacked.function == "stack" and name in ("mean", "sum"):
            share = 1.0 / max(1, len(stacked.operands)) if name == "mean" else 1.0
            yield from ((share, o) for o in stacked.operands if self._known(o, stacked))
        elif self._known(first, record):
            yield 1.0, first

    def _known(self, value: Any, record: _Record) -> bool:
        return isinstance(value, torch.Tensor) and value.numel() == 1 and self._latest(value, record.index) is not None

    def _constant(self, value: Any, record: _Record) -> float | None:
        """The value of a factor: a number, or a single number that no gradient flows through.

        One that lies on a device is not read, since that would wait for the device: its term stays whole.
        """
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if (isinstance(value, torch.Tensor) and value.numel() == 1 and not value.requires_grad
                and value.device.type == "cpu"):
            return float(value.detach())
        return None


def _distinct(terms: list[Term]) -> Iterator[Term]:
    """Names made different by the line where they are equal."""
    names = [t.name for t in terms]
    for term in terms:
        if names.count(term.name) == 1:
            yield term
        else:
            number = [t for t in terms if t.name == term.name].index(term) + 1
            yield replace(term, name=f"{term.name}#{number}")
