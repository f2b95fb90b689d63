"""What a step did, short enough to keep: calls of outermost modules, and each operation of the code around them.

The operations inside a module are not noted (the call is run again as a whole); those of the loop itself, which
compute the loss, are few. Tensors that the step made are remembered by number and not kept alive; what it was given is
kept until the next step begins.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing import reductions
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from torch.utils.data import _utils as data_utils

from traindx_tools.on_torch.nonfinite import operations as ops
from traindx_tools.on_torch.nonfinite.places import Place, here
from traindx_tools.on_torch.nonfinite.sources import storage_key
from traindx_tools.on_torch.snapshot.state import Surroundings

MOST_ENTRIES = 4_096
"""Operations and calls of one step; a step with more is not kept."""
MOST_BYTES = 2**30
"""Of what one step was given beside parameters, so that keeping it cannot fill the memory."""


@dataclass(frozen=True)
class Made:
    """The number of a tensor that the step made."""

    slot: int


@dataclass(frozen=True, eq=False)
class Given:
    """A tensor that was there before, as it was at that version."""

    tensor: torch.Tensor
    version: int

    @property
    def unchanged(self) -> bool:
        """Whether nobody has written to it since."""
        return self.tensor._version == self.version


@dataclass(frozen=True, eq=False)
class Op:
    """One operation of the code around the modules."""

    func: Any
    args: Any
    kwargs: Any
    results: tuple[int, ...]
    gradients: bool
    place: Place | None
    drawn: tuple[torch.Tensor, ...] | None = None
    """What a random operation gave: it is taken as it is."""


@dataclass(frozen=True, eq=False)
class Call:
    """The call of an outermost module."""

    module: torch.nn.Module
    args: Any
    kwargs: Any
    results: tuple[int, ...]
    gradients: bool
    place: Place | None
    surroundings: Surroundings
    buffers: Mapping[str, torch.Tensor]
    versions: tuple[int, ...]
    """Of its parameters."""
    numbers: tuple[tuple[torch.nn.Module, Mapping[str, Any]], ...] = ()
    """Plain numbers that hang on the program's own modules, such as a counter of calls."""


@dataclass(frozen=True, eq=False)
class Noted:
    """What was noted of one step; a new step's notes do not reach it."""

    entries: list[Op | Call]
    slots: int
    memory_of: list[int]
    """The storage that each number looks at."""

    def leading_to(self, slots: Iterable[int]) -> list[Op | Call]:
        """The entries that tensors were made from, in order; views and what is written in place belong together."""
        needed = {self.memory_of[s] for s in slots}
        found: list[Op | Call] = []
        for entry in reversed(self.entries):
            if any(self.memory_of[s] in needed for s in entry.results):
                found.append(entry)
                read: list[Made] = []
                mapped((entry.args, entry.kwargs), read.append, Made)
                needed.update(self.memory_of[m.slot] for m in read)
        return found[::-1]


@dataclass
class _Known:
    """Tensors by identity, and by the memory that they look at: autograd wraps views anew."""

    by_id: dict[int, tuple[weakref.ref[torch.Tensor], int]] = field(default_factory=dict)
    by_memory: dict[Any, list[tuple[Any, int, bool]]] = field(default_factory=dict)
    fresh: dict[int, Any] = field(default_factory=dict)
    """Storages that the step itself allocated."""
    written: set[int] = field(default_factory=set)
    """Storages of others that it wrote to: what looks at them is no longer what was made."""

    def put(self, tensor: torch.Tensor, slot: int, gradients: bool) -> None:
        """The tensor has this number from here on."""
        self.by_id[id(tensor)] = weakref.ref(tensor), slot
        self.by_memory.setdefault(_memory(tensor), []).append((_weak(tensor), slot, gradients))

    def slot_of(self, tensor: torch.Tensor) -> int | None:
        """Its number, None where the step did not make it."""
        if storage_key(tensor) in self.written:
            return None
        held = self.by_id.get(id(tensor))
        if held is not None and held[0]() is tensor:
            return held[1]
        alive = [(s, g) for weak, s, g in self.by_memory.get(_memory(tensor), ()) if not weak.expired()]
        fitting = [s for s, g in alive if g == tensor.requires_grad] or [s for s, _ in alive]
        return fitting[-1] if fitting else None

    def allocated(self, tensor: torch.Tensor) -> bool:
        """Whether the step itself allocated the memory of this tensor."""
        weak = self.fresh.get(storage_key(tensor))
        return weak is not None and not weak.expired()


class Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The mode that notes operations while it is open; results are the program's own."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._on_stack = self._open = False
        self.clear()

    def clear(self) -> None:
        """A new step begins."""
        self.entries: list[Op | Call] = []
        self.broken = ""
        """Why the step cannot be run again, "" where it can."""
        self.slots = 0
        self._memory_of: list[int] = []
        """The storage that each number looks at."""
        self._known = _Known()
        self._given: dict[int, Given] = {}
        self._bytes = 0

    # ---- on and off

    def open(self) -> None:
        """Notes operations from here. Above another's mode it is not put: that one's end would take ours away."""
        if not self._on_stack and torch._C._len_torch_dispatch_stack() == 0:
            self.__enter__()  # type: ignore[no-untyped-call]
            self._on_stack = True
        self._open = self._on_stack

    def close(self) -> None:
        """Notes none. Under another's mode it stays where it is and does nothing."""
        self._open = False
        if self._on_stack and _get_current_dispatch_mode() is self:
            self._on_stack = False
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        """Runs the operation and notes it."""
        named = kwargs or {}
        if not self._open or self.broken or data_utils.worker._worker_info is not None:
            return func(*args, **named)
        try:
            if self._writes_to_others(func, args, named):
                return func(*args, **named)
            noted = self._before(func, args, named)
        except Exception as error:  # noqa: BLE001 - a tensor of an unknown kind costs the replay, not the training
            self.broken = f"{func} was called with what cannot be kept ({type(error).__name__})"
            return func(*args, **named)
        output = func(*args, **named)
        try:
            self._after(func, noted, output)
        except Exception as error:  # noqa: BLE001 - see above
            self.broken = f"{func} gave what cannot be kept ({type(error).__name__})"
        return output

    # ---- operations

    def _writes_to_others(self, func: Any, args: Any, kwargs: Any) -> bool:
        """Whether it changes in place what the step did not make: that is not done a second time.

        What reads it later is given it as it is then.
        """
        written = [t for position, name, keyword_only in ops.written(func)
                   for t in tensors_of(kwargs.get(name) if keyword_only or position >= len(args) else args[position])]
        others = [storage_key(t) for t in written if not self._known.allocated(t)]
        self._known.written.update(others)
        return bool(others)

    def _before(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any, bool, set[int]]:
        if ops.namespace(func) in ops.COLLECTIVES:
            self.broken = "it exchanges values with other processes"
        if len(self.entries) >= MOST_ENTRIES or self._bytes > MOST_BYTES:
            self.broken = f"it has more than {MOST_ENTRIES:,} operations outside of modules or reads too much"
        read = list(tensors_of((args, kwargs)))
        wants = torch.is_grad_enabled() and any(t.requires_grad for t in read) and ops.base_name(func) != "detach"
        return self.kept(args), self.kept(kwargs), wants, {storage_key(t) for t in read}

    def _after(self, func: Any, noted: tuple[Any, Any, bool, set[int]], output: Any) -> None:
        args, kwargs, wants, read = noted
        results = list(tensors_of(output))
        slots = tuple(self._number(t, wants and t.is_floating_point(), storage_key(t) not in read) for t in results)
        drawn = tuple(results) if torch.Tag.nondeterministic_seeded in func.tags else None
        self.entries.append(Op(func, args, kwargs, slots, torch.is_grad_enabled(), here(), drawn))

    # ---- calls

    def called(self, module: torch.nn.Module, args: Any, kwargs: Any) -> Callable[[Any], None]:
        """A module is about to be called; what is returned takes its output."""
        gradients, place, around = torch.is_grad_enabled(), here(), Surroundings.now()
        given = self.kept(args), self.kept(kwargs)
        buffers = {n: b.detach().clone() for n, b in module.named_buffers()}
        versions, numbers = versions_of(module), tuple(_numbers_of(module))

        def returned(output: Any) -> None:
            slots = tuple(self._number(t, t.requires_grad, True) for t in tensors_of(output))
            if len(self.entries) < MOST_ENTRIES:
                self.entries.append(Call(module, *given, slots, gradients, place, around, buffers, versions,
                                         numbers))

        return returned

    # ---- tensors

    def slot_of(self, tensor: torch.Tensor) -> int | None:
        """The number of a tensor that the step made, None for others."""
        return self._known.slot_of(tensor)

    def leading_to(self, slot: int) -> list[Op | Call]:
        """The entries that a tensor was made from, in order."""
        return self.noted().leading_to((slot,))

    def noted(self) -> Noted:
        """What was noted up to here; a step that goes on is added to it, one that begins is not."""
        return Noted(self.entries, self.slots, self._memory_of)

    def kept(self, value: Any) -> Any:
        """A value with its tensors replaced by what stands for them."""
        return mapped(value, self._stand_in)

    def _stand_in(self, tensor: torch.Tensor) -> Made | Given:
        slot = self._known.slot_of(tensor)
        if slot is not None:
            return Made(slot)
        held = self._given.get(id(tensor))
        if held is None:
            kept = tensor if tensor.is_leaf else tensor.detach()  # no graph is kept alive
            held = self._given[id(tensor)] = Given(kept, tensor._version)
            self._bytes += 0 if tensor.is_leaf and tensor.requires_grad else tensor.numel() * tensor.element_size()
        return held

    def _number(self, tensor: torch.Tensor, gradients: bool, fresh: bool) -> int:
        if fresh:
            self._known.fresh[storage_key(tensor)] = _weak(tensor)
        self.slots += 1
        self._memory_of.append(storage_key(tensor))
        self._known.put(tensor, self.slots - 1, gradients)
        return self.slots - 1


def versions_of(module: torch.nn.Module) -> tuple[int, ...]:
    """How often each of its parameters was written."""
    return tuple(p._version for p in module.parameters())


def _numbers_of(module: torch.nn.Module) -> Iterator[tuple[torch.nn.Module, Mapping[str, Any]]]:
    for part in module.modules():
        if not type(part).__module__.startswith("torch."):
            yield part, {k: v for k, v in vars(part).items() if type(v) in (int, float, bool)}


def tensors_of(value: Any, depth: int = 6) -> Iterator[torch.Tensor]:
    """The tensors in nested lists, tuples, mappings and plain objects, in a fixed order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, Mapping):
        for part in value.values():
            yield from tensors_of(part, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_of(part, depth - 1)
    elif depth and hasattr(value, "__dict__") and not isinstance(value, (type, torch.nn.Module)):
        for part in vars(value).values():
            if isinstance(part, (torch.Tensor, Mapping, list, tuple)):
                yield from tensors_of(part, depth - 1)


def mapped(value: Any, change: Callable[[Any], Any], kind: Any = torch.Tensor) -> Any:
    """The value with each tensor (or whatever `kind` is) in its lists, tuples and dicts changed."""
    if isinstance(value, kind):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(v, change, kind) for v in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(v, change, kind) for v in value))
    if type(value) is dict:
        return {k: mapped(v, change, kind) for k, v in value.items()}
    return value


def _memory(tensor: torch.Tensor) -> Any:
    return (storage_key(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype)


def _weak(tensor: torch.Tensor) -> Any:
    kind: Any = reductions.StorageWeakRef
    return kind(tensor.untyped_storage())
