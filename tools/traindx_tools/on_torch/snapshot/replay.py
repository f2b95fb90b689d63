"""Runs a kept step again, on copies and with every operation watched, until what went wrong has gone wrong again."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from traindx_tools.on_torch.nonfinite.events import BATCH, BUFFER, PARAMETER, Event, joined
from traindx_tools.on_torch.nonfinite.named import named_parts
from traindx_tools.on_torch.nonfinite.places import Place, on_behalf_of
from traindx_tools.on_torch.nonfinite.statistics import all_finite, readable, span
from traindx_tools.on_torch.nonfinite.tracer import Tracer
from traindx_tools.on_torch.probe import Scene
from traindx_tools.on_torch.snapshot.copying import Copier, optimizer_on
from traindx_tools.on_torch.snapshot.state import RandomState, without_autocast
from traindx_tools.on_torch.snapshot.tape import Call, Given, Made, Op, Tape, mapped, tensors_of, versions_of
from traindx_tools.on_torch.speed.compilations import compiles

Watched = tuple[str, torch.Tensor]
"""What a value is called, and the value."""


class NotReplayable(Exception):
    """The step cannot be run again, or took another course; the text says why."""


@dataclass(frozen=True)
class Replayed:
    """What went wrong again: its name, and where it came from."""

    seen_in: str
    events: tuple[Event, ...]
    others: int


@dataclass(frozen=True)
class KeptStep:
    """An optimizer before a step: its groups (with the program's parameters), copies of these and of its state."""

    optimizer: torch.optim.Optimizer
    groups: Sequence[dict[str, Any]]
    parameters: Sequence[torch.Tensor]
    values: Sequence[torch.Tensor]
    state: Sequence[dict[str, Any]]


class Replay:
    """One attempt. Neither the program's tensors nor its random numbers are changed."""

    def __init__(self, scene: Scene, batch_place: Place | None = None) -> None:
        self._scene, self._batch_place = scene, batch_place
        self._copier = Copier()
        self._phase = "forward"
        self._modules: list[str] = []
        self._paths: dict[int, str] = {}
        self._values: list[Any] = []
        self.tracer = Tracer(lambda: self._modules[-1] if self._modules else None, lambda: self._phase)

    # ---- forward and backward

    def forward(self, tape: Tape, loss: torch.Tensor) -> Replayed:
        """Runs a step up to its loss, which was not finite."""
        return self._run(tape, loss, lambda value: [("the loss", value)])

    def backward(self, tape: Tape, loss: torch.Tensor) -> Replayed:
        """Runs a step and its backward pass, whose gradients were not finite."""
        return self._run(tape, loss, lambda value: self._gradients(value))

    def _run(self, tape: Tape, loss: torch.Tensor, then: Callable[[torch.Tensor], list[Watched]]) -> Replayed:
        if tape.broken:
            raise NotReplayable(tape.broken)
        slot = tape.slot_of(loss)
        if slot is None and compiles():
            raise NotReplayable("the program compiles, and what is compiled cannot be noted")
        if slot is None:
            raise NotReplayable("the loss was not made by what was seen of the step")
        needed = tape.leading_to(slot)
        self._copy(needed)
        self._values = [None] * tape.slots
        with self._watching():
            if self._batch_place is not None:
                on_behalf_of(self._batch_place, self._look_at_batch)
            for entry in needed:
                self._again(entry)
            value = self._values[slot]
            if value is None:
                raise NotReplayable("the loss was not made again")
            return self._judged(then(value))

    def _look_at_batch(self) -> None:
        for path, tensor in named_parts(self._scene.batch, "batch"):
            self.tracer.met(tensor, BATCH, path)

    def _again(self, entry: Op | Call) -> None:
        if isinstance(entry, Op) and entry.drawn is not None:
            results: list[Any] = list(entry.drawn)
        else:
            args, kwargs = (mapped(v, self._filled, (Made, Given)) for v in (entry.args, entry.kwargs))
            run = self._operation if isinstance(entry, Op) else self._call
            with torch.set_grad_enabled(entry.gradients):
                results = list(tensors_of(on_behalf_of(entry.place, lambda: run(entry, args, kwargs))))
        if len(results) != len(entry.results):
            raise NotReplayable("it took another course")
        for slot, result in zip(entry.results, results, strict=True):
            self._values[slot] = result

    def _operation(self, entry: Any, args: Any, kwargs: Any) -> Any:
        with without_autocast():
            return entry.func(*args, **kwargs)

    def _call(self, entry: Any, args: Any, kwargs: Any) -> Any:
        module = self._copier.module(entry.module)
        buffers = dict(module.named_buffers())
        for name, values in entry.buffers.items():
            if name in buffers:
                buffers[name].data.copy_(values)  # unseen by the version counter: an earlier call's graph may hold it
        for part, numbers in entry.numbers:
            vars(self._copier.module(part)).update(numbers)
        with entry.surroundings.again(), contextlib.redirect_stdout(io.StringIO()):
            return module(*args, **kwargs)

    def _filled(self, stand_in: Made | Given) -> Any:
        if isinstance(stand_in, Made):
            value = self._values[stand_in.slot]
            if value is None:
                raise NotReplayable("it reads what was not made again")
            return value
        if not stand_in.unchanged:
            raise NotReplayable("what the step was given was changed in place since")
        tensor = stand_in.tensor
        return self._copier.tensor(tensor) if tensor.is_leaf and tensor.requires_grad else tensor

    def _gradients(self, loss: torch.Tensor) -> list[Watched]:
        if loss.numel() != 1 or not loss.requires_grad:
            raise NotReplayable("the loss has no gradient when it is made again")
        leaves = [(o, c) for o, c in self._copier.pairs(torch.Tensor) if c.is_leaf and c.requires_grad]
        self._phase = "backward"
        with torch.enable_grad(), without_autocast():
            found = torch.autograd.grad(loss, [c for _, c in leaves], allow_unused=True)
        return [(f"the gradient of `{self._path(o)}`", g) for (o, _), g in zip(leaves, found, strict=True)
                if g is not None]

    # ---- the optimizer

    def step(self, kept: KeptStep) -> Replayed:
        """Runs an optimizer step, after which a parameter was not finite."""
        copies = [torch.nn.Parameter(v.detach().clone(), p.requires_grad)
                  for p, v in zip(kept.parameters, kept.values, strict=True)]
        by_id = {id(p): c for p, c in zip(kept.parameters, copies, strict=True)}
        for parameter, copy in zip(kept.parameters, copies, strict=True):
            if parameter.grad is not None:
                copy.grad = parameter.grad.detach().clone()
        groups = [{**g, "params": [by_id[id(p)] for p in g["params"]]} for g in kept.groups]
        state = {c: {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in s.items()}
                 for c, s in zip(copies, kept.state, strict=True) if s}
        again = optimizer_on(kept.optimizer, groups, state)
        self._phase = "optimizer"
        both = list(zip(kept.parameters, copies, strict=True))
        named = [(f"the parameter `{self._path(p)}`", c) for p, c in both]
        with self._watching():
            self.tracer.sources.name(((self._path(p), c.detach()) for p, c in both), PARAMETER)
            try:
                again.step()
            except TypeError as error:  # one that wants a closure
                raise NotReplayable(f"the optimizer's step needs what was not kept ({error})") from error
            return self._judged(named)

    # ---- what both need

    def _copy(self, entries: Iterable[Op | Call]) -> None:
        """Copies what the step used, and names the copies like the originals."""
        for entry in entries:
            if isinstance(entry, Call):
                if versions_of(entry.module) != entry.versions:
                    raise NotReplayable("parameters were changed since")
                self._copier.module(entry.module)
            for stand_in in _given((entry.args, entry.kwargs)):
                self._filled(stand_in)
        self._paths = {id(c): self._scene.module_paths.get(id(o)) or type(o).__name__
                       for o, c in self._copier.pairs(torch.nn.Module)}

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        """Everything is traced; afterwards random numbers go on as if nothing had been."""
        before = RandomState.now()
        hooks = (torch_module.register_module_forward_pre_hook(self._enter),
                 torch_module.register_module_forward_hook(self._leave, always_call=True))
        self.tracer.__enter__()  # type: ignore[no-untyped-call]
        try:
            self._name_copies()
            yield
        except NotReplayable:
            raise
        except Exception as error:
            raise NotReplayable(f"{type(error).__name__}: {error}") from error
        finally:
            self.tracer.leave()
            for hook in hooks:
                hook.remove()
            before.restore()

    def _name_copies(self) -> None:
        buffers = {id(b): n for _, m in self._copier.pairs(torch.nn.Module) for n, b in m.named_buffers()}
        for original, copy in self._copier.pairs(torch.Tensor):
            values = readable(copy)
            if values is not None:
                kind, name = (BUFFER, buffers[id(copy)]) if id(copy) in buffers else (PARAMETER, self._path(original))
                self.tracer.sources.name([(name, values)], kind)
                if kind == PARAMETER:
                    self.tracer.met(values, PARAMETER)

    def _judged(self, watched: Iterable[Watched]) -> Replayed:
        bad = [(name, v) for name, tensor in watched for v in [readable(tensor)]
               if v is not None and not all_finite(span(v))]
        if not bad:
            raise NotReplayable("the values stayed finite when it was run again")
        events = tuple(e for _, v in bad for e in [self.tracer.sources.of(v)] if e is not None)
        if not events or self.tracer.off:
            raise NotReplayable("where the values came from was not seen")
        return Replayed(bad[0][0], events, len(joined(events)) - 1)

    def _path(self, tensor: torch.Tensor) -> str:
        return self._scene.parameter_paths.get(id(tensor), "a tensor of the program")

    def _enter(self, module: torch.nn.Module, _: Any) -> None:
        self._modules.append(self._paths.get(id(module)) or type(module).__name__)

    def _leave(self, *_: Any) -> None:
        if self._modules:
            self._modules.pop()


def _given(value: Any) -> Iterator[Given]:
    found: list[Given] = []
    mapped(value, found.append, Given)
    yield from found
