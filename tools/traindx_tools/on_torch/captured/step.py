"""One training step on copies, up to its loss: run again with an argument changed or in single precision.

What the tape noted is replayed: calls of models as a whole with the random numbers and buffers that they had, the code
around them operation by operation. A step whose loss is not met again to the last bit is not asked anything.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.on_torch.captured.call import NotKept, names_of, rows_of
from traindx_tools.on_torch.snapshot.copying import Copier
from traindx_tools.on_torch.snapshot.state import without_autocast
from traindx_tools.on_torch.snapshot.tape import Call, Given, Made, Op, Tape, mapped, tensors_of, versions_of

SECONDS = 3.0
"""Of all runs of one step together."""
HALVES = (torch.float16, torch.bfloat16)
Argument = tuple[int, str]
"""The number of a call among those of the step, and where a tensor stands among its arguments."""
Changes = Mapping[Argument, Callable[[torch.Tensor], torch.Tensor]]


@dataclass
class Ran:
    """One run: its loss with its graph, the copies of what is trained by their originals, and tensors by their slot."""

    loss: torch.Tensor
    leaves: list[tuple[torch.Tensor, torch.Tensor]]
    values: Sequence[torch.Tensor | None]
    returned: dict[int, list[torch.Tensor]] = field(default_factory=dict)
    """The tensors of each call's output, by the number of the call."""

    def gradients(self, of: torch.Tensor | None = None, also: Sequence[torch.Tensor] = (), *,
                  keep: bool = False) -> list[torch.Tensor | None]:
        """Of the loss (or another scalar of this run) on what is trained, and on other tensors of the run."""
        wanted = [c for _, c in self.leaves] + list(also)
        value = self.loss if of is None else of
        if not value.requires_grad or not wanted:
            return [None] * len(wanted)
        with torch.enable_grad(), without_autocast():
            found = torch.autograd.grad(value.sum(), wanted, allow_unused=True, retain_graph=keep)
        return list(found)


class StepCopy:
    """A noted step. Everything that it runs belongs inside `sandbox.unnoticed` of its models."""

    def __init__(self, tape: Tape, slot: int, loss: torch.Tensor, set_back: Callable[[], None] = lambda: None) -> None:
        """`slot`: the number of the tensor that backward was called on; `loss`: its value."""
        if tape.broken:
            raise NotKept(tape.broken)
        self._entries, self._slots, self._slot = tape.leading_to(slot), tape.slots, slot
        self._set_back = set_back
        self._began, self._longest = time.monotonic(), 0.0
        self.calls = [e for e in self._entries if isinstance(e, Call)]
        if not self.calls:
            raise NotKept("no model was called")
        if any(versions_of(c.module) != c.versions for c in self.calls):
            raise NotKept("parameters were changed since")
        again = self.run().loss.detach()
        if again.shape != loss.shape or not torch.equal(again, loss) or not bool(torch.isfinite(again).all()):
            raise NotKept("its loss does not repeat")
        self.loss = again

    @property
    def half(self) -> torch.dtype | None:
        """The half precision that its calls compute in: that of autocast, or of parameters."""
        for call in self.calls:
            for device, enabled, dtype in call.surroundings.autocast:
                if enabled and dtype in HALVES and any(p.device.type == device for p in call.module.parameters()):
                    return dtype
            for p in call.module.parameters():
                if p.dtype in HALVES:
                    return p.dtype
        return None

    def arguments(self) -> dict[Argument, torch.Tensor]:
        """Tensors that the first call of each trained model is given, without those that another model made."""
        found: dict[Argument, torch.Tensor] = {}
        self.run(keep_arguments=found)
        first: dict[int, int] = {}
        for number, call in enumerate(self.calls):
            first.setdefault(id(call.module), number)
        asked = {n for n in first.values() if self.calls[n].gradients
                 and any(p.requires_grad for p in self.calls[n].module.parameters())}
        return {place: t for place, t in found.items() if place[0] in asked and not t.requires_grad}

    def rows(self, number: int, arguments: Mapping[Argument, torch.Tensor]) -> int:
        """Samples of one call."""
        return rows_of(t for (n, _), t in arguments.items() if n == number)

    def run(self, changes: Changes | None = None, *, single: bool = False, around: Any = None,
            watch: Callable[[torch.nn.Module, torch.nn.Module], Any] | None = None,
            keep_arguments: dict[Argument, torch.Tensor] | None = None) -> Ran:
        """The step up to its loss. Raises NotKept where it fails, takes another course, or time is up.

        `changes`: by argument, what is given in its place. `single`: without half precision. `around`: a context for
        the calls. `watch(original, copy)`: told each model before it is called.
        """
        return self.through(StepRun(self._slots, Copier(), changes or {}, single, around or contextlib.nullcontext(),
                                    watch, keep_arguments))

    @property
    def slots(self) -> int:
        """Tensors that the step makes."""
        return self._slots

    @property
    def slot(self) -> int:
        """The number of the loss."""
        return self._slot

    @property
    def entries(self) -> Sequence[Op | Call]:
        """What leads to its loss, in order."""
        return self._entries

    def through(self, run: StepRun) -> Ran:
        """The step in a run of the caller's own kind. Raises NotKept as `run` does."""
        if time.monotonic() - self._began + self._longest > SECONDS:
            raise NotKept("time is up")
        began = time.monotonic()
        self._set_back()
        try:
            for entry in self._entries:
                run.again(entry)
        except NotKept:
            raise
        except Exception as error:
            raise NotKept(f"{type(error).__name__}: {str(error)[:120]}") from error
        self._longest = max(self._longest, time.monotonic() - began)
        loss = run.values[self._slot]
        if loss is None or loss.numel() != 1:
            raise NotKept("the loss was not made again")
        leaves = [(o, c) for o, c in run.copier.pairs(torch.Tensor) if c.is_leaf and c.requires_grad]
        return Ran(loss, leaves, run.values, run.returned)


@dataclass
class StepRun:
    """One run of the entries of a step, on copies."""

    slots: int
    copier: Copier
    changes: Changes
    single: bool
    around: Any
    watch: Callable[[torch.nn.Module, torch.nn.Module], Any] | None
    keep: dict[Argument, torch.Tensor] | None
    number: int = -1
    returned: dict[int, list[torch.Tensor]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values: list[torch.Tensor | None] = [None] * self.slots

    def again(self, entry: Op | Call) -> None:
        """Makes an entry once more and keeps what it gives."""
        if isinstance(entry, Op) and entry.drawn is not None:
            results = [self._cast(t) for t in entry.drawn]
        else:
            args, kwargs = (mapped(v, self._filled, (Made, Given)) for v in (entry.args, entry.kwargs))
            with torch.set_grad_enabled(entry.gradients):
                made = self._operation(entry, args, kwargs) if isinstance(entry, Op) else self._call(
                    entry, args, kwargs)
            results = list(tensors_of(made))
        if len(results) != len(entry.results):
            raise NotKept("it took another course")
        for slot, result in zip(entry.results, results, strict=True):
            self.values[slot] = result

    def _operation(self, entry: Op, args: Any, kwargs: Any) -> Any:
        if self.single:
            args, kwargs = (mapped(v, lambda d: torch.float32 if d in HALVES else d, torch.dtype)
                            for v in (args, kwargs))
        with without_autocast():
            return entry.func(*args, **kwargs)

    def _call(self, entry: Call, args: Any, kwargs: Any) -> Any:
        self.number += 1
        module = self.copier.module(entry.module)
        buffers = dict(module.named_buffers())
        with torch.no_grad():
            for name, values in entry.buffers.items():
                if name in buffers:
                    buffers[name].data.copy_(values)
        for part, numbers in entry.numbers:
            vars(self.copier.module(part)).update(numbers)
        if self.single:
            self._widen(module)
        args, kwargs = self._changed(entry, args, kwargs)
        if self.watch is not None:
            self.watch(entry.module, module)
        with entry.surroundings.again(), self._precision(entry), self.around:
            made = module(*args, **kwargs)
        self.returned[self.number] = list(tensors_of(made))
        return made

    def _widen(self, module: torch.nn.Module) -> None:
        with torch.no_grad():
            for t in (*module.parameters(), *module.buffers()):
                if t.dtype in HALVES:
                    t.data = t.data.float()

    @contextlib.contextmanager
    def _precision(self, entry: Call) -> Iterator[None]:
        with without_autocast() if self.single else contextlib.nullcontext():
            yield

    def _changed(self, entry: Call, args: Any, kwargs: Any) -> tuple[Any, Any]:
        names = names_of(entry.module)
        by_position = {names[i] if i < len(names) else str(i): a for i, a in enumerate(args)}
        changed = {**_renamed(by_position, self._one), **_renamed(kwargs, self._one)}
        return [changed[n] for n in by_position], {n: changed[n] for n in kwargs}

    def _one(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        if self.keep is not None:
            self.keep[self.number, name] = tensor
        change = self.changes.get((self.number, name))
        return tensor if change is None else change(tensor)

    def _filled(self, stand_in: Made | Given) -> Any:
        if isinstance(stand_in, Made):
            value = self.values[stand_in.slot]
            if value is None:
                raise NotKept("it reads what was not made again")
            return value
        if not stand_in.unchanged:
            raise NotKept("what the step was given was changed in place since")
        tensor = stand_in.tensor
        if tensor.is_leaf and tensor.requires_grad:
            copy = self.copier.tensor(tensor)
            if self.single and copy.dtype in HALVES:
                copy.data = copy.data.float()
            return copy
        return self._cast(tensor)

    def _cast(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.float() if self.single and tensor.dtype in HALVES else tensor


def _renamed(value: Any, change: Callable[[str, torch.Tensor], torch.Tensor], name: str = "") -> Any:
    """Nested arguments with `change(where it stands, tensor)` in the place of each tensor."""
    if isinstance(value, torch.Tensor):
        return change(name, value)
    if type(value) is dict:
        return {k: _renamed(v, change, f"{name}.{k}".lstrip(".")) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_renamed(v, change, f"{name}.{i}") for i, v in enumerate(value))
    return value
