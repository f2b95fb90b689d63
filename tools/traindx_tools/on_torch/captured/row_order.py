"""Whether the loss of a step is another one when the same rows come in another order.

Outputs of the models and what the DataLoader gave are put in another order, all in the same; the code between them and
the loss is run again, operation by operation. The models are not: what they draw for a row stays with it. A program
that sorts its rows itself gives its models the same rows again, and its loss stays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.on_torch.captured.call import NotKept
from traindx_tools.on_torch.captured.step import Ran, StepCopy, StepRun
from traindx_tools.on_torch.nonfinite import operations as ops
from traindx_tools.on_torch.nonfinite.sources import storage_key
from traindx_tools.on_torch.rules.t730_row_order import APART, FEWEST_ROWS, RowOrder
from traindx_tools.on_torch.snapshot.copying import Copier
from traindx_tools.on_torch.snapshot.tape import Call, Given, Made, Op, mapped, tensors_of

ORDERS = 3
CUMULATIVE = frozenset({"cumsum", "logcumsumexp", "cumprod", "cummax", "cummin", "_cummax_helper", "_cummin_helper"})
"""Operations whose result at a row is made of all rows before it."""
MOST_VALUES = 2**22


def row_order(step: StepCopy, batch: Any, rows: int) -> RowOrder | None:
    """None where the loss stays. `batch`: what the DataLoader gave; `rows`: its rows.

    Raises NotKept where the step gives its models or its loss rows in a way that is not followed.
    """
    given = [t for t in tensors_of(batch) if t.ndim and t.shape[0] == rows]
    if rows < FEWEST_ROWS or not given or any(in_order(t) for t in given):
        return None
    keys = {storage_key(t) for t in given}
    _only_rows_of_the_batch(step, keys, rows)
    base = _Reordered.over(step, keys, torch.arange(rows))
    before = step.through(base)
    if not _near(before.loss, step.loss):
        raise NotKept("its loss does not repeat")
    generator = torch.Generator().manual_seed(0)
    ran: list[tuple[Ran, torch.Tensor]] = []
    for _ in range(ORDERS):
        order = torch.randperm(rows, generator=generator)
        ran.append((step.through(_Reordered.over(step, keys, order, base)), order))
        if _near(ran[-1][0].loss, before.loss):
            return None
    entry = next(_broken(_leading_to(step.entries, step.slot), before, *ran[0]), None)
    place = entry.place if entry is not None else None
    return RowOrder(float(before.loss.detach()), tuple(float(r.loss.detach()) for r, _ in ran), rows,
                    ops.base_name(entry.func) if entry is not None else "",
                    entry is not None and _cumulative(entry, before, rows), place.file if place is not None else None,
                    place.line if place is not None else None)


def in_order(values: torch.Tensor) -> bool:
    """Whether the rows of a column, or of one of few columns, already stand in its order: somebody sorted them."""
    columns = values.detach()[:, None] if values.ndim == 1 else values.detach()
    if columns.ndim != 2 or columns.shape[1] > 64 or columns.is_complex():
        return False
    steps = columns[1:].double() - columns[:-1].double()
    one_way = (steps <= 0).all(0) | (steps >= 0).all(0)
    return bool((one_way & ((steps != 0).sum(0) * 2 >= len(steps))).any())


def _only_rows_of_the_batch(step: StepCopy, keys: set[int], rows: int) -> None:
    """Another tensor with as many rows may belong to them, or to as many classes: nobody knows."""
    for entry in step.entries:
        found: list[Given] = []
        mapped((entry.args, entry.kwargs), found.append, Given)
        for one in found:
            t = one.tensor
            if t.ndim and t.shape[0] == rows and not t.requires_grad and storage_key(t) not in keys and (
                    isinstance(entry, Op)):
                raise NotKept("its loss reads other values of as many rows")


def _near(a: torch.Tensor, b: torch.Tensor) -> bool:
    one, other = float(a.detach()), float(b.detach())
    return abs(one - other) <= APART * max(abs(one), abs(other), 1e-12)


@dataclass
class _Reordered(StepRun):
    """A run with rows in another order; models give what they gave, in that order."""

    keys: set[int] = field(default_factory=set)
    order: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    base: _Reordered | None = None
    inputs: dict[int, list[torch.Tensor]] = field(default_factory=dict)

    @classmethod
    def over(cls, step: StepCopy, keys: set[int], order: torch.Tensor, base: _Reordered | None = None) -> _Reordered:
        """A run of the step in this order; `base`: the run as it was."""
        return cls(step.slots, Copier(), {}, False, contextlib.nullcontext(), None, None, keys=keys, order=order,
                   base=base)

    def again(self, entry: Op | Call) -> None:
        if isinstance(entry, Op) and entry.drawn is not None:
            for slot, result in zip(entry.results, entry.drawn, strict=True):
                self.values[slot] = self._drawn(result)
            return
        super().again(entry)

    def _drawn(self, result: torch.Tensor) -> torch.Tensor:
        if not self._has_rows(result):
            return result
        if not result.is_floating_point():
            raise NotKept("the program draws an order of its rows itself")
        return self._moved(result)

    def _filled(self, stand_in: Made | Given) -> Any:
        tensor = super()._filled(stand_in)
        if isinstance(stand_in, Given) and storage_key(stand_in.tensor) in self.keys and self._has_rows(tensor):
            return self._moved(tensor)
        return tensor

    def _call(self, entry: Call, args: Any, kwargs: Any) -> Any:
        if self.base is None:
            made = super()._call(entry, args, kwargs)
            self.inputs[self.number] = list(tensors_of((args, kwargs)))
            return made
        self.number += 1
        before, outputs = self.base.inputs[self.number], self.base.returned[self.number]
        if not self._follows(before, list(tensors_of((args, kwargs)))):
            return outputs
        if not all(self._has_rows(t) for t in outputs):
            raise NotKept("a model gives something other than rows")
        return [self._moved(t) for t in outputs]

    def _follows(self, before: Sequence[torch.Tensor], now: Sequence[torch.Tensor]) -> bool:
        """Whether a model is given its rows in the new order (else in the old one). Raises NotKept."""
        told: set[bool] = set()
        for a, b in zip(before, now, strict=True):
            if not self._has_rows(a):
                continue
            same, moved = torch.equal(a, b), torch.equal(self._moved(a), b)
            if not same and not moved:
                raise NotKept("a model is given its rows in a third order")
            if same != moved:
                told.add(moved)
        if len(told) > 1:
            raise NotKept("a model is given some of its rows in the new order and some in the old one")
        return True in told

    def _has_rows(self, tensor: torch.Tensor) -> bool:
        return tensor.ndim > 0 and tensor.shape[0] == len(self.order)

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor[self.order.to(tensor.device)]


def _leading_to(entries: Sequence[Op | Call], slot: int) -> list[Op | Call]:
    """Those whose results the loss is made of, without others that look at the same memory."""
    needed, found = {slot}, []
    for entry in reversed(entries):
        if needed.intersection(entry.results):
            found.append(entry)
            read: list[Made] = []
            mapped((entry.args, entry.kwargs), read.append, Made)
            needed.update(m.slot for m in read)
    return found[::-1]


def _broken(entries: Sequence[Op | Call], before: Ran, after: Ran, order: torch.Tensor) -> Iterator[Op]:
    """Operations whose result neither stays nor follows the rows, in order."""
    for entry in entries:
        if not isinstance(entry, Op) or entry.drawn is not None:
            continue
        for slot in entry.results:
            a, b = before.values[slot], after.values[slot]
            if a is None or b is None or a.shape != b.shape or a.numel() > MOST_VALUES or not a.is_floating_point():
                continue
            if not _alike(a.detach(), b.detach(), order.to(a.device)):
                yield entry
                break


def _alike(a: torch.Tensor, b: torch.Tensor, order: torch.Tensor) -> bool:
    ways = [a]
    for axis in (0, 1):
        if a.ndim > axis and a.shape[axis] == len(order):
            ways += [w.index_select(axis, order) for w in ways]
    room = 1e-4 * float(a.abs().median()) if a.numel() else 0.0  # a mask may hold -1e9
    return any(torch.allclose(w, b, rtol=1e-3, atol=room, equal_nan=True) for w in ways)


def _cumulative(entry: Op, before: Ran, rows: int) -> bool:
    if ops.base_name(entry.func) in CUMULATIVE:
        return True
    read: list[torch.Tensor] = []
    for kind in (Made, Given):
        mapped((entry.args, entry.kwargs), lambda s: read.extend(_value(s, before)), kind)
    return any(_triangle(t) for t in read if t.shape == (rows, rows))


def _value(stand_in: Made | Given, before: Ran) -> list[torch.Tensor]:
    tensor = before.values[stand_in.slot] if isinstance(stand_in, Made) else stand_in.tensor
    return [] if tensor is None else [tensor.detach()]


def _triangle(matrix: torch.Tensor) -> bool:
    """Whether one side of the diagonal is empty and the other is not: a row is joined with all before it."""
    numbers = matrix.double()
    low, high = torch.tril(numbers, -1), torch.triu(numbers, 1)
    return bool((low == 0).all()) != bool((high == 0).all())
