"""Notes a training step and asks a copy of it: what its loss depends on, how its terms pull, what half precision does
(T331, T341, T402, T404, T730, T954)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.captured.call import NotKept
from traindx_tools.on_torch.captured.examine import small_enough
from traindx_tools.on_torch.captured.half_precision import half_against_single
from traindx_tools.on_torch.captured.loss_inputs import unused_by_loss
from traindx_tools.on_torch.captured.sandbox import unnoticed
from traindx_tools.on_torch.captured.self_average import TapeOfAverages
from traindx_tools.on_torch.captured.step import StepCopy
from traindx_tools.on_torch.captured.term_gradients import TermPull, term_gradients
from traindx_tools.on_torch.loss_terms.expression import LossTrace, Term
from traindx_tools.on_torch.loss_terms.replaced import replaced_function
from traindx_tools.on_torch.measures.place_in_memory import place_in_memory
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.probes import row_order
from traindx_tools.on_torch.rules import (
    t331_argument_unused,
    t341_one_object,
    t402_term_zero,
    t404_pull_disparity,
    t954_half_parts,
)
from traindx_tools.on_torch.rules.dependence import Where
from traindx_tools.on_torch.rules.t341_one_object import Shared
from traindx_tools.on_torch.speed.compilations import compiles, watch_compile

SOURCE = "torch probe: copy of a step"
KEPT_AT = (2, 8, 30)
"""Optimizer steps before those that are noted: not the ones that the probe of the loss terms traces. Terms are asked in
each, everything else in the first."""


class StepCopyProbe(TorchProbe):
    """Three steps of a program that does not compile, in one process; each is noted up to its first backward pass.

    Its name comes after that of the snapshot, which notes every step and goes first.
    """

    name = "step-copy"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._tape = TapeOfAverages()
        watch_compile(self._tape.close)
        self._trace: Any = None
        self._thread = threading.get_ident()
        self._noting = False
        self._returned: Callable[[Any], None] | None = None
        self._slot: int | None = None
        self._terms: tuple[Term, ...] = ()
        self._slots: dict[str, int | None] = {}
        self._looks: list[tuple[int, dict[str, TermPull]]] = []
        self._places: dict[str, tuple[str, int]] = {}
        self._averaged: list[tuple[int, str | None]] = []
        """Parameters of a noted step that were averaged with themselves, and where."""
        self._first = True
        self.not_asked = ""
        """Why the last step could not be asked."""

    def next_look(self) -> int:
        """The step before the one that is noted."""
        if self._noting:
            return 0
        return next((k for k in KEPT_AT if k > self.scene.step), self.NEVER)

    # ---- what is noted

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Begins with the next step, or ends."""
        self._stop()
        if self.scene.step in KEPT_AT and optimizer is self.scene.optimizers[0] and self._able():
            self._noting = True
            self._tape.open()
            self._thread = threading.get_ident()
            self._trace = LossTrace()
            self._trace.__enter__()
        self.done = self.done or self.scene.step > KEPT_AT[-1]

    def before_batch(self) -> None:
        """What a DataLoader computes in this process is none of it."""
        self._tape.close()
        if self._noting:
            self._tape.clear()

    def batch_given(self, batch: Any) -> None:
        """From here the loop's own operations are noted."""
        self._open()

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The call is noted as a whole."""
        self._tape.close()
        self._returned = self._tape.called(model, args, kwargs) if self._noting else None

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """So is what it returned."""
        if self._returned is not None:
            self._returned(output)
            self._returned = None
        self._open()

    def before_backward(self, loss: torch.Tensor) -> None:
        """The step ends here, as far as it is noted."""
        self._tape.close()
        if not self._noting:
            return
        self._note_averages()
        self._trace.resting = True
        self._slot = self._tape.slot_of(loss) if loss.numel() == 1 else None
        self._terms = tuple(self._trace.terms(loss))
        self._slots = {t.name: self._tape.slot_of(t.tensor) for t in self._terms}

    def _note_averages(self) -> None:
        held = {place_in_memory(p) for o in self.scene.optimizers for group in o.param_groups for p in group["params"]}
        count, place = len(held & self._tape.averaged), self._tape.place
        if count:
            self._averaged.append((count, f"{place.file}:{place.line}" if place is not None else None))
        self._tape.reset()

    def after_backward(self, loss: torch.Tensor) -> None:
        """Asks, before anything moves."""
        if not self._noting:
            return
        self._noting = False
        try:
            for finding in self._ask(loss.detach()):
                self.scene.recorder.finding(finding)
        except Exception as why:  # noqa: BLE001 - a mode that is on the stack must be taken off in `after_step`
            self.not_asked = str(why) if isinstance(why, NotKept) else f"{type(why).__name__}: {why}"
            if self._first:
                self.scene.program.remarks.append(f"no copy of a step was asked: {self.not_asked[:200]}")
        finally:
            self._first = False
            self._tape.clear()
            self._terms, self._slots = (), {}

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """Nothing is asked after an error."""
        self._stop()
        return ()

    def finish(self) -> Iterable[Finding]:
        """Judges the terms over all looks."""
        self._stop()
        rank = self.scene.recorder.rank
        if self._averaged:
            count, line = self._averaged[-1]
            yield from t341_one_object.check([Shared("averaged-with-itself", "the trained model", "", count,
                                                     len(self._averaged), line, self.scene.step, rank)])
        yield from t402_term_zero.check_pulls(self._looks, self._places, SOURCE, rank)
        yield from t404_pull_disparity.check_pulls(self._looks, self._places, SOURCE, rank)

    # ---- what is asked

    def _ask(self, loss: torch.Tensor) -> Iterator[Finding]:
        if self._slot is None:
            raise NotKept("its loss was not made by what was seen of the step")
        if compiles():
            raise NotKept("the program compiles")
        if not self._first and len(self._terms) < 2:
            return
        models = [m for m in self.scene.models if any(True for _ in m.parameters())]
        for model in models:
            small_enough(model)
        _room_on_devices(models)
        with contextlib.ExitStack() as stack:
            backs = [stack.enter_context(unnoticed(m)) for m in models]
            step = StepCopy(self._tape, self._slot, loss, lambda: _each(backs))
            self._look_at_terms(step)
            if self._first:
                yield from self._findings(step)

    def _look_at_terms(self, step: StepCopy) -> None:
        with contextlib.suppress(NotKept):
            pulls = term_gradients(step, self._terms, self._slots)
            self._places.update({t.name: (t.file, t.line) for t in self._terms})
            if pulls:
                self._looks.append((self.scene.step + 1, pulls))

    def _findings(self, step: StepCopy) -> Iterator[Finding]:
        here = Where("", self.scene.step, self.scene.recorder.rank)
        with contextlib.suppress(NotKept):
            yield from t331_argument_unused.check_loss(unused_by_loss(step), here)
        yield from row_order.asked(step, self.scene)
        with contextlib.suppress(NotKept):
            paths = {**self.scene.parameter_paths, **self.scene.module_paths}
            half = half_against_single(step, paths)
            if half is not None:
                yield from t954_half_parts.check(half, here)
                self.scene.program.remarks.append(t954_half_parts.told(half))

    def _able(self) -> bool:
        there = torch.distributed.is_available() and torch.distributed.is_initialized()
        alone = not there or torch.distributed.get_world_size() == 1
        return alone and not compiles() and replaced_function() is None and not self.scene.sharded

    def _open(self) -> None:
        if self._noting:
            self._tape.open()

    def let_go(self) -> None:
        """Takes the trace off the stack."""
        self._stop()

    def _stop(self) -> None:
        self._noting = False
        self._tape.close()
        self._tape.clear()
        trace, self._trace = self._trace, None
        if trace is not None and threading.get_ident() == self._thread:  # modes belong to their thread
            trace.__exit__(None, None, None)


def _each(calls: Iterable[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _room_on_devices(models: Iterable[torch.nn.Module]) -> None:
    """A step on copies takes what a step takes: where that much is not free, the training's memory is not risked."""
    for device in {p.device for m in models for p in m.parameters() if p.device.type == "cuda"}:
        if torch.cuda.mem_get_info(device)[0] < torch.cuda.max_memory_allocated(device):
            raise NotKept("the device has too little free memory")
