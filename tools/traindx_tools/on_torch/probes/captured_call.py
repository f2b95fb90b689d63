"""Keeps one training call of each model and asks a copy what its output depends on (T331 to T339, T903)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.on_torch.captured.call import MOST_BYTES, KeptCall, NotKept, kept, names_of, plain, rows_of
from traindx_tools.on_torch.captured.examine import Answers, examine
from traindx_tools.on_torch.captured.owned import owners_of
from traindx_tools.on_torch.captured.unsaved import plain_state
from traindx_tools.on_torch.measures.batch import main_tensor
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.probes.losses import bound
from traindx_tools.on_torch.rules import (
    t331_argument_unused,
    t332_future_seen,
    t333_padding_seen,
    t334_affine,
    t335_dropout_in_evaluation,
    t336_state_not_saved,
    t337_layers_are_one,
    t338_mode_matters,
    t339_call_writes,
    t732_rows_reordered,
    t903_batch_leak,
)
from traindx_tools.on_torch.rules.dependence import SOURCE, Where
from traindx_tools.on_torch.rules.t337_layers_are_one import Stack
from traindx_tools.on_torch.snapshot.tape import tensors_of
from traindx_tools.on_torch.speed.compilations import compiles, watch_compile
from traindx_tools.on_torch.world import world_size

KEPT_IN = 2
"""Optimizer steps before the one whose calls are kept: statistics of a batch norm are measured by then."""
MOST_MODELS, MOST_TARGETS = 4, 8


class CapturedCallProbe(TorchProbe):
    """What the output of each model depends on, asked of a copy after the third step (on a device at the end)."""

    name = "captured-call"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        watch_compile()
        self._calls: dict[int, KeptCall] = {}
        self._room = [MOST_BYTES]
        self._loaded = self._saved = False
        self._initial: dict[int, dict[tuple[str, str], Any]] = {}
        self._unsaved: list[tuple[Any, Where]] = []
        self.answers: list[Answers] = []
        self._asked = False

    def next_look(self) -> int:
        """Nothing in a step is of interest once it was asked; that somebody saves is."""
        return self.NEVER if self._asked else 0

    def model_found(self, model: torch.nn.Module) -> None:
        """Its plain state, and layers that are one."""
        self._initial[id(model)] = plain_state(model)
        path = self.scene.module_paths.get(id(model), type(model).__name__)
        stacks = [s for s in stacks_of(model) if s.distinct < s.places]
        for finding in t337_layers_are_one.check(stacks, Where(path, self.scene.step, self.scene.recorder.rank)):
            self.scene.recorder.finding(finding)

    def file_written(self, path: Any, value: Any) -> None:
        """Somebody saves."""
        self._saved = True

    def batch_given(self, batch: Any) -> None:
        """That there is a DataLoader says which axis is the samples'."""
        self._loaded = True

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keeps the first training call of each model in one step."""
        if self.scene.step != KEPT_IN or id(model) in self._calls or len(self._calls) >= MOST_MODELS:
            return
        if not torch.is_grad_enabled() or not model.training or not plain((args, kwargs)):
            return
        if not any(m is model for m in self.scene.models):
            return
        try:
            tensors = list(tensors_of((args, kwargs)))
            count, owner = rows_of(tensors), owners_of(tensors)
            copied = kept((args, kwargs), self._room, count if owner is None else 0)
        except NotKept:
            return
        path = self.scene.module_paths.get(id(model), type(model).__name__)
        main = main_tensor(self.scene.batch) if self._loaded else None
        rows = main.shape[0] if main is not None and main.ndim else 0
        self._calls[id(model)] = KeptCall(model, path, copied[0], copied[1], rows, count, names_of(model),
                                           self._initial.pop(id(model), {}), owner)

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Keeps the targets that followed a kept call."""
        if not self._calls or self.scene.step != KEPT_IN:
            return
        given = bound(name, args, kwargs)
        target, ignored = given.get("target", given.get("targets")), given.get("ignore_index")
        if not isinstance(target, torch.Tensor) or type(target) is not torch.Tensor:
            return
        try:
            copy = kept(target, self._room)
        except (NotKept, RuntimeError):
            return
        given_as = is_given(target, self.scene.batch) if self._loaded else None
        for call in self._calls.values():
            if len(call.targets) < MOST_TARGETS:
                call.targets.append((copy, ignored if isinstance(ignored, int) else None))
            if given_as is not None:
                call.in_order = given_as or call.in_order is True

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Asks, once; on a device, where every answer waits for it, at the end instead."""
        due = self.scene.step > KEPT_IN and not self._asked
        if due and not any(_on_a_device(call.model) for call in self._calls.values()):
            for finding in self._ask():
                self.scene.recorder.finding(finding)

    def finish(self) -> Iterable[Finding]:
        """A program of few steps is asked at its end."""
        found = [] if self._asked else list(self._ask())
        for answer, where in self._unsaved:
            found += t336_state_not_saved.check(answer, where, self._saved)
        return found

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """After an error a device may be gone: nothing is asked."""
        self._calls.clear()
        self._asked = True
        return ()

    def _ask(self) -> Iterator[Finding]:
        self._asked = True
        calls, self._calls = list(self._calls.values()), {}
        if compiles() or world_size() > 1:
            return
        for call in calls:
            if not _wanted(call.model):
                continue
            answers = examine(call)
            self.answers.append(answers)
            if answers.text:
                self.scene.program.remarks.append(answers.text)
            try:
                yield from self._findings(answers, call)
            except Exception as error:  # noqa: BLE001 - one model's answers must not cost the others
                say(f"answers of {call.path} are left out: {type(error).__name__}: {error}")

    def _findings(self, answers: Answers, call: KeptCall) -> Iterator[Finding]:
        where = Where(call.path, self.scene.step, self.scene.recorder.rank)
        found = answers.found
        yield from t331_argument_unused.check(found.get("arguments"), where)
        yield from t332_future_seen.check(found.get("later positions"), where)
        yield from t333_padding_seen.check(found.get("padding"), where)
        yield from t334_affine.check(found.get("affine"), where)
        yield from t335_dropout_in_evaluation.check(found.get("dropout in evaluation"), where)
        yield from t338_mode_matters.check(found.get("the mode"), where)
        yield from t339_call_writes.check(found.get("one batch twice"), where)
        told = t339_call_writes.told(found.get("one batch twice"), where)
        self.scene.program.remarks += [told] if told else []
        if found.get("state outside of the checkpoint") is not None:
            self._unsaved.append((found["state outside of the checkpoint"], where))
        mixed = found.get("other samples")
        if mixed is not None and len(self.scene.optimizers) == 1:
            if mixed.order:
                yield from t732_rows_reordered.check(mixed.order, where, mixed.within)
                return
            sample = mixed.sample if mixed.sample >= 0 else mixed.samples - 1
            yield from t903_batch_leak.check({-1: mixed.largest}, mixed.samples, sample, SOURCE, where.model,
                                             packed=call.owner is not None)


def stacks_of(model: torch.nn.Module) -> Iterator[Stack]:
    """Containers of at least two places with parameters in them."""
    for path, module in model.named_modules():
        if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)):
            held = [m for m in module._modules.values()
                    if m is not None and any(p.requires_grad for p in m.parameters())]
            if len(held) >= 2:
                yield Stack(path or type(model).__name__, type(held[0]).__name__, len(held), len({id(m) for m in held}))


def is_given(target: torch.Tensor, batch: Any) -> bool:
    """Whether a target holds, row by row, what the DataLoader gave."""
    flat = target.detach().reshape(-1)
    return any(t.numel() == flat.numel() and bool((t.detach().reshape(-1).double() == flat.double()).all())
               for t in tensors_of(batch) if t.device == flat.device and not t.is_complex())


def _on_a_device(model: torch.nn.Module) -> bool:
    return any(p.device.type != "cpu" for p in model.parameters())


def _wanted(model: torch.nn.Module) -> bool:
    """Models that are trained."""
    return any(p.requires_grad for p in model.parameters())
