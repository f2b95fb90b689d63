"""Watches every operation of a few steps and notes where values stop being finite.

A `TorchDispatchMode` sees each ATen operation with real tensors, in the forward pass, the backward pass (the autograd
engine runs its operations under the mode of the thread that called it, on device threads too) and the optimizer. An
operation of the backward pass belongs to the line that made its autograd node: nodes carry the sequence number that
was current when the forward operation ran.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from torch.utils.data import _utils as data_utils

from traindx_tools.live.notice import say
from traindx_tools.on_torch.nonfinite import operations as ops
from traindx_tools.on_torch.nonfinite.events import (
    BUFFER,
    COMPUTED,
    CONSTANT,
    OUTSIDE,
    THROUGH,
    UNINITIALISED,
    Event,
    joined,
)
from traindx_tools.on_torch.nonfinite.places import Place, here, recomputing
from traindx_tools.on_torch.nonfinite.sources import Sources, storage_key
from traindx_tools.on_torch.nonfinite.statistics import Stats, all_finite, measure, of_span, readable, span

MOST_NODES = 400_000
"""Forward operations whose place is remembered; older ones are forgotten."""


@dataclass(frozen=True)
class Operand:
    """A tensor that an operation reads, as it was before."""

    tensor: torch.Tensor
    span: tuple[float, float]
    overwritten: bool = False

    @property
    def finite(self) -> bool:
        return all_finite(self.span)

    @property
    def stats(self) -> Stats:
        return of_span(self.tensor, self.span) if self.overwritten else measure(self.tensor)


@dataclass(frozen=True)
class Where:
    """The place of an operation in the program."""

    phase: str
    place: Place | None
    module: str | None
    node: str = ""
    hidden: bool = False
    """The forward operation of this node gave non-finite values that were hidden afterwards."""


class Tracer(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The mode. `module` and `phase` are told by who drives it."""

    def __init__(self, module: Callable[[], str | None], phase: Callable[[], str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sources = Sources()
        self.off = False
        self._module, self._phase = module, phase
        self._number = 0
        self._nodes: dict[int, tuple[Place | None, str | None]] = {}
        self._bad_nodes: set[int] = set()
        self._read_out: tuple[Event, ...] = ()
        """Where the last non-finite value came from that the program read with `item()`."""
        self.operations = 0

    def leave(self) -> None:
        """Ends the tracing. Where others have put their modes above this one it stays on the stack and does nothing."""
        self.off = True
        if _get_current_dispatch_mode() is self:
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        """Runs the operation and looks at what it read and wrote."""
        named = kwargs or {}
        if self.off or data_utils.worker._worker_info is not None or ops.namespace(func) in ops.COLLECTIVES:
            return func(*args, **named)
        try:
            self.operations += 1
            self._remember_node()
            before = self._reads(func, args, named)
        except Exception as error:  # noqa: BLE001 - a tensor of an unknown kind ends the tracing, not the training
            self._switch_off(func, error)
            return func(*args, **named)
        output = func(*args, **named)
        try:
            self._judge(func, args, named, before, output)
        except Exception as error:  # noqa: BLE001 - see above
            self._switch_off(func, error)
        return output

    # ---- what was there before

    def met(self, tensor: Any, kind: str, name: str | None = None) -> Event | None:
        """Where a tensor's non-finite values come from; a new record where nobody saw them come. None if finite."""
        values = readable(tensor)
        if values is None or all_finite(span(values)):
            return None
        known = self.sources.of(values)
        if known is None:
            return self._external(values, kind, name)
        if kind == OUTSIDE or any(o.kind != OUTSIDE for o in known.origins):
            return known
        return self._external(values, kind, name, known.origins[0].place)

    def _external(self, tensor: torch.Tensor, kind: str = OUTSIDE, name: str | None = None,
                  place: Place | None = None) -> Event:
        """A record of what was there before; `place` where it came in, by default where it is met."""
        named = self.sources.named(tensor)
        stats = measure(tensor)
        if named is not None:
            kind, name = named
        if kind in (OUTSIDE, BUFFER) and not stats.nans and (stats.count == 1 or kind == BUFFER):
            kind = CONSTANT  # an infinity in a mask, or one that the program wrote as a number
        where = self._where()
        event = Event(self._next(), kind, phase=where.phase, place=place or where.place, module=where.module,
                      name=name, output=stats)
        self.sources.put(tensor, event)
        return event

    # ---- one operation

    def _remember_node(self) -> None:
        """The place of the forward operation whose autograd node was made just now."""
        if not torch.is_grad_enabled():
            return
        sequence = _sequence()
        if sequence in self._nodes:
            return
        if len(self._nodes) > MOST_NODES:
            self._nodes.clear()
            self._bad_nodes.clear()
        current = torch._C._current_autograd_node()
        if current is None:
            self._nodes[sequence] = here(), self._module()
        else:
            where = self._where()
            self._nodes[sequence] = where.place, where.module

    def _reads(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[list[Operand]]:
        """The readable tensors that the operation reads: one list, or one an element of its lists."""
        changed = {id(v) for v in _flat(_written_values(func, args, kwargs))}
        only_out = {id(v) for v in _flat(_written_values(func, (), kwargs))}
        ignored = changed if ops.base_name(func) in ops.OVERWRITES else only_out

        def operands(values: Iterable[Any]) -> list[Operand]:
            found = ((v, readable(v)) for v in values if isinstance(v, torch.Tensor) and id(v) not in ignored)
            return [Operand(t, span(t), id(v) in changed) for v, t in found if t is not None]

        everything = (*args, *kwargs.values())
        if ops.elementwise_lists(func):
            return [operands(row) for row in _rows(everything)]
        return [operands(_flat(everything))]

    def _judge(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], before: list[list[Operand]],
               output: Any) -> None:
        """Notes what the operation did to finiteness, an element of its lists at a time."""
        results = [*_written_values(func, args, kwargs)]
        if ops.elementwise_lists(func):
            lists = [v for v in (output, *results) if isinstance(v, (list, tuple))]
            rows = list(_rows(lists or [output]))
        else:
            rows = [list(_flat((output, *results)))]
        numbers = tuple(float(v) for v in _flat((*args, *kwargs.values())) if isinstance(v, (int, float)))
        written = {storage_key(v) for v in map(readable, _flat(results)) if v is not None}
        for index, row in enumerate(rows):
            reads = before[index] if index < len(before) else (before[0] if before else [])
            self._one(func, reads, row, numbers, written)

    def _one(self, func: Any, reads: Sequence[Operand], results: Sequence[Any], numbers: tuple[float, ...],
             written: set[int]) -> None:
        bad = [r for r in reads if not r.finite]
        as_it_was = {storage_key(r.tensor) for r in reads} - written
        if ops.base_name(func) == "_local_scalar_dense" and bad:
            self._read_out = joined(self.sources.of(b.tensor) or self._external(b.tensor) for b in bad)
        seen: set[int] = set()
        for result in results:
            values = readable(result)
            if values is None or id(result) in seen:
                continue
            seen.add(id(result))
            if storage_key(values) in as_it_was:
                continue  # a view of what was read
            if all_finite(span(values)):
                self.sources.clear(values)
            else:
                self.sources.put(values, self._event(func, reads, bad, values, numbers))

    def _event(self, func: Any, reads: Sequence[Operand], bad: Sequence[Operand], result: torch.Tensor,
               numbers: tuple[float, ...]) -> Event:
        name = ops.base_name(func)
        if name in ops.UNINITIALISED:
            return self._computed(name, UNINITIALISED, reads, result, numbers)
        if not bad and any(map(math.isnan, numbers)) and self._read_out:
            return Event(self._next(), THROUGH, op=name, roots=self._read_out)
        if not bad:
            written = name in ops.CONSTANT and any(map(math.isinf, numbers)) and not any(map(math.isnan, numbers))
            return self._computed(name, CONSTANT if written else COMPUTED, reads, result, numbers)
        roots = joined(self.sources.of(b.tensor) or self._external(b.tensor) for b in bad)
        if name.startswith("lift_fresh") and roots[-1].number == self._number:  # torch.tensor([...])
            kind = CONSTANT if not measure(result).nans else OUTSIDE
            return self._computed(name, kind, (), result, numbers)
        details = self._born_anew(name, bad, roots, result)
        if details is not None:
            return self._computed(name, COMPUTED, reads, result, numbers, details, roots)
        return Event(self._next(), THROUGH, op=name, roots=roots)

    def _born_anew(self, name: str, bad: Sequence[Operand], roots: Sequence[Event],
                   result: torch.Tensor) -> tuple[str, ...] | None:
        """What an operation made of infinities that were all right so far; None where it only passes them on."""
        nans_read = any(math.isnan(b.span[0]) and measure(b.tensor).nans for b in bad if not b.overwritten) or any(
            b.overwritten and math.isnan(b.span[0]) for b in bad)
        if nans_read:
            return None
        given = measure(result)
        if given.nans and (name in ops.SOFTMAX or ops.is_attention(name)) and _has_masked_row(bad):
            return ("masked-row",)
        if any(r.kind != CONSTANT for r in roots):
            return None
        if given.nans:
            return ("from-constant",)
        if name.startswith("nll_loss"):
            return ("masked-target",)
        return None

    def _computed(self, name: str, kind: str, reads: Sequence[Operand], result: torch.Tensor,
                  numbers: tuple[float, ...], details: tuple[str, ...] = (), roots: tuple[Event, ...] = ()) -> Event:
        where = self._where()
        if where.phase == "forward" and torch.is_grad_enabled():
            self._bad_nodes.add(_sequence())
        more = ("hidden-forward",) if where.hidden else ()
        path = next((n[1] for r in reads for n in [self.sources.named(r.tensor)] if n and r.overwritten), None)
        return Event(self._next(), kind, name, where.phase, where.node, where.place, where.module, path,
                     tuple(r.stats for r in reads), measure(result), numbers, (*details, *more), roots)

    # ---- where it happens

    def _where(self) -> Where:
        node = torch._C._current_autograd_node()
        if node is None:
            return Where(self._phase(), here(), self._module())
        inner = here(inside_engine=True)
        kind = node.name()
        if inner is not None and recomputing():
            return Where("forward (recomputed)", inner, self._module())
        sequence = node._sequence_nr()
        place, module = self._nodes.get(sequence, (None, None))
        return Where("backward", inner or place or here(), module, kind, sequence in self._bad_nodes)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _switch_off(self, func: Any, error: Exception) -> None:
        self.off = True
        say(f"tracing ended at {func}: {type(error).__name__}: {error}; the training goes on")


def _sequence() -> int:
    """The number of the autograd node that was made last on this thread."""
    return int(torch._C._autograd._get_sequence_nr()) - 1


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


def _rows(values: Sequence[Any]) -> Iterator[list[Any]]:
    """Of several lists the first elements, the second ones, ...; what is no list belongs to each."""
    lists = [v for v in values if isinstance(v, (list, tuple))]
    others = [v for v in values if not isinstance(v, (list, tuple))]
    length = max(map(len, lists), default=0)
    if not lists:
        yield others
    for index in range(length):
        yield [*(x[index] for x in lists if index < len(x)), *others]


def _written_values(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that the operation writes to."""
    found = []
    for position, name, keyword_only in ops.written(func):
        if not keyword_only and position < len(args):
            found.append(args[position])
        elif name in kwargs:
            found.append(kwargs[name])
    return found


def _has_masked_row(bad: Sequence[Operand]) -> bool:
    """Whether some row of a tensor is -inf from end to end, in any dimension."""
    for operand in bad:
        masked = operand.tensor == -math.inf
        if any(bool(masked.all(dim).any()) for dim in range(masked.dim())):
            return True
    return False

