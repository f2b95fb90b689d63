"""Follows a training step by step: keeps what a step can be run again from, and notices where one goes wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from traindx_tools.experiments.replaying.symptom import Course, Kind, Symptom
from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.probe import Scene
from traindx_tools.on_torch.replaying.kept import Passes, Root, Scenario, Update
from traindx_tools.on_torch.replaying.updating import norm_of
from traindx_tools.on_torch.snapshot.replay import KeptStep
from traindx_tools.on_torch.snapshot.rerun import givens
from traindx_tools.on_torch.snapshot.state import Copies
from traindx_tools.on_torch.snapshot.tape import Noted, Tape


@dataclass
class _Open:
    """The passes of the step that goes on."""

    roots: list[Root] = field(default_factory=list)
    leftover: dict[int, torch.Tensor] = field(default_factory=dict)
    value: float = math.nan
    dtype: torch.dtype = torch.float32
    problem: str = ""


class Keeper:
    """What is kept of this step and of the last update. `course`: the losses and norms so far."""

    def __init__(self, scene: Scene, tape: Tape) -> None:
        self._scene, self._tape = scene, tape
        self.course = Course()
        self._open = _Open()
        self._backwards = 0
        """Since the last step."""
        self._clipped = False
        self._update: Update | None = None
        self._steppers: set[int] = set()
        self._before: frozenset[int] = frozenset()
        """Ids of the tensors that the step before was given; they are kept alive by its notes."""
        self._before_notes: Noted | None = None
        self._gradients = Copies()

    # ---- moments

    def cleared(self) -> None:
        """The notes of the tape begin anew."""
        self._open = _Open()

    def backward(self, root: torch.Tensor) -> Symptom | None:
        """`backward` is about to be called on this tensor; what is wrong with the loss."""
        loss, here = self._scene.loss, self._open
        if loss is None or loss.numel() != 1 or not loss.is_floating_point():
            here.problem = "backward is called on something else than a single number"
            return None
        here.value, here.dtype = float(loss.double()), loss.dtype
        whole = float(root.detach().double())
        scaled = root.data_ptr() != loss.data_ptr() and math.isfinite(whole) and here.value != 0.0
        factor = whole / here.value if scaled else 1.0
        if not here.roots:
            here.leftover = self._left_over()
        slot = self._tape.slot_of(root)
        if slot is None:
            here.problem = "the loss was not made by what was seen of the step"
        else:
            here.roots.append(Root(slot, factor))
        self._backwards += 1
        return self.course.loss(here.value, self._scene.step + 1)

    def clipped(self) -> None:
        """Gradients were clipped."""
        self._clipped = True

    def stepping(self, gradients: Sequence[torch.Tensor]) -> Symptom | None:
        """An optimizer is about to step with these; what is wrong with them."""
        return self.course.norm(norm_of(gradients), self._scene.step + 1) if gradients else None

    def kept(self, step: KeptStep) -> None:
        """Parameters and state are kept; the step is about to be made."""
        self._steppers.add(id(step.optimizer))
        self._update = Update(step, self._copied(step), self._passes_or_none(), self._clipped)

    def stepped(self) -> None:
        """The step was made, or skipped: the next one begins."""
        if self._open.roots:
            notes = self._tape.noted()
            self._before_notes = notes
            self._before = frozenset(id(g.tensor) for g in givens(notes.entries))
        self._backwards, self._clipped = 0, False
        self._open = _Open()

    def let_go(self) -> None:
        """Nothing more is kept."""
        self._update = self._before_notes = None
        self._gradients = Copies()
        self._before = frozenset()
        self._open = _Open()

    # ---- what a study is made of

    def symptom(self, kind: Kind) -> Symptom:
        """What others saw at this step: a loss, gradient or parameter that is not finite."""
        step = self._scene.step + (0 if kind == "parameters" else 1)
        return self.course.symptom(kind, step, math.nan if kind != "loss" else self._open.value)

    def scenario(self, symptom: Symptom) -> Scenario:
        """The kept step. Raises NotReplayable where it cannot be run again, with why."""
        update, why = self._last_update()
        if symptom.kind == "parameters":
            if update is None or update.passes is None:
                raise NotReplayable(why or "the passes of the step were not kept")
            return Scenario(symptom, update.passes, update)
        return Scenario(symptom, self._passes(), update, why, self._clipped)

    def _last_update(self) -> tuple[Update | None, str]:
        if self._update is None:
            return None, "there was no update before"
        if len(self._steppers) > 1 or len(self._scene.optimizers) > 1:
            return None, "several optimizers make the steps"
        return self._update, ""

    def _passes_or_none(self) -> Passes | None:
        try:
            return self._passes()
        except NotReplayable:
            return None

    def _passes(self) -> Passes:
        here, tape = self._open, self._tape
        if tape.broken or here.problem:
            raise NotReplayable(tape.broken or here.problem)
        if not here.roots:
            raise NotReplayable("nothing was noted of its passes: a batch was asked for between them and the step")
        draw = self._scene.draw
        drawn = tuple(int(i) for i in draw.index) if draw is not None else ()
        return Passes(tape.noted(), tuple(here.roots), here.value, here.dtype, here.leftover,
                      self._backwards > len(here.roots), drawn, self._before)

    # ---- gradients

    def _left_over(self) -> dict[int, torch.Tensor]:
        """Gradients from before the first backward pass of these notes: of earlier ones, or of the step before."""
        held = {id(p): p for o in self._scene.optimizers for g in o.param_groups for p in g["params"]}
        held |= {id(p): p for m in self._scene.models for p in m.parameters()}
        there = {i: p.grad.detach() for i, p in held.items() if p.grad is not None and not p.grad.is_sparse}
        if not there or norm_of(list(there.values())) == 0.0:
            return {}
        return {i: g.clone() for i, g in there.items()}

    def _copied(self, step: KeptStep) -> list[torch.Tensor | None]:
        """Copies of the gradients that the step takes, into the same memory each time."""
        now = [p.grad.detach() for p in step.parameters if p.grad is not None]
        sparse = any(g.is_sparse for g in now)
        copies = iter([g.clone() for g in now] if sparse else self._gradients.take(now))
        return [None if p.grad is None else next(copies) for p in step.parameters]

    @property
    def bytes(self) -> int:
        """What copies of gradients hold."""
        return self._gradients.bytes
