"""Runs a kept step again, on copies and with every operation watched, until what went wrong has gone wrong again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.nonfinite.events import BATCH, BUFFER, PARAMETER, Event, joined
from traindx_tools.on_torch.nonfinite.named import named_parts
from traindx_tools.on_torch.nonfinite.places import Place, on_behalf_of
from traindx_tools.on_torch.nonfinite.statistics import all_finite, readable, span
from traindx_tools.on_torch.nonfinite.tracer import Tracer
from traindx_tools.on_torch.probe import Scene
from traindx_tools.on_torch.snapshot.copying import optimizer_on
from traindx_tools.on_torch.snapshot.rerun import Rerun, givens
from traindx_tools.on_torch.snapshot.state import RandomState, without_autocast
from traindx_tools.on_torch.snapshot.tape import Call, Noted, Op, Tape, versions_of
from traindx_tools.on_torch.speed.compilations import compiles

Watched = tuple[str, torch.Tensor]
"""What a value is called, and the value."""


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


class Replay(Rerun):
    """One attempt. Neither the program's tensors nor its random numbers are changed."""

    def __init__(self, scene: Scene, batch_place: Place | None = None) -> None:
        super().__init__()
        self._scene, self._batch_place = scene, batch_place
        self._phase = "forward"
        self._modules: list[str] = []
        self._paths: dict[int, str] = {}
        self.tracer = Tracer(lambda: self._modules[-1] if self._modules else None, lambda: self._phase)

    # ---- forward and backward

    def forward(self, tape: Tape, loss: torch.Tensor) -> Replayed:
        """Runs a step up to its loss, which was not finite."""
        return self.forward_of(*_root(tape, loss))

    def backward(self, tape: Tape, loss: torch.Tensor) -> Replayed:
        """Runs a step and its backward pass, whose gradients were not finite."""
        return self.backward_of(*_root(tape, loss))

    def forward_of(self, noted: Noted, slot: int) -> Replayed:
        """The same of notes that were kept, up to the number of the loss."""
        return self._run(noted, slot, lambda value: [("the loss", value)])

    def backward_of(self, noted: Noted, slot: int) -> Replayed:
        """The same with the backward pass."""
        return self._run(noted, slot, lambda value: self._gradients(value))

    def _run(self, noted: Noted, slot: int, then: Callable[[torch.Tensor], list[Watched]]) -> Replayed:
        needed = noted.leading_to((slot,))
        self._copy(needed)
        self.values = [None] * noted.slots
        with self._watching():
            if self._batch_place is not None:
                on_behalf_of(self._batch_place, self._look_at_batch)
            for entry in needed:
                self.again(entry)
            value = self.values[slot]
            if value is None:
                raise NotReplayable("the loss was not made again")
            return self._judged(then(value))

    def _look_at_batch(self) -> None:
        for path, tensor in named_parts(self._scene.batch, "batch"):
            self.tracer.met(tensor, BATCH, path)

    def _gradients(self, loss: torch.Tensor) -> list[Watched]:
        if loss.numel() != 1 or not loss.requires_grad:
            raise NotReplayable("the loss has no gradient when it is made again")
        leaves = self.leaves()
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
                self.copier.module(entry.module)
            for stand_in in givens((entry,)):
                self.filled(stand_in)
        self._paths = {id(c): self._scene.module_paths.get(id(o)) or type(o).__name__
                       for o, c in self.copier.pairs(torch.nn.Module)}

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
        buffers = {id(b): n for _, m in self.copier.pairs(torch.nn.Module) for n, b in m.named_buffers()}
        for original, copy in self.copier.pairs(torch.Tensor):
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


def _root(tape: Tape, loss: torch.Tensor) -> tuple[Noted, int]:
    """What was noted, and the number of the loss. Raises NotReplayable where it has none."""
    if tape.broken:
        raise NotReplayable(tape.broken)
    slot = tape.slot_of(loss)
    if slot is None and compiles():
        raise NotReplayable("the program compiles, and what is compiled cannot be noted")
    if slot is None:
        raise NotReplayable("the loss was not made by what was seen of the step")
    return tape.noted(), slot
