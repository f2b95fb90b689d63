"""What the program is made of and does, kept as facts for whoever reads the record (and T211, T212)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.horizon import horizon_of, length_like, peak_of
from traindx_tools.on_torch.measures.origin import Origin, tensors_in
from traindx_tools.on_torch.measures.parameters import local
from traindx_tools.on_torch.nonfinite.places import Place, here
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t211_schedule_and_run, t212_rate_zero_at_first
from traindx_tools.program.entities import Loss, Model, Optimizer, Schedule, StateFile
from traindx_tools.program.program import Program
from traindx_tools.program.roles import roles_of
from traindx_tools.program.timeline import Moment
from traindx_tools.program_texts.of_run import facts
from traindx_tools.program_texts.values import MOST_VALUES, kind_of, values_of

LINES = 24
"""Calls of each kind whose line is noted: walking the stack costs more than counting."""
MOST_RATES, MOST_FILES, MOST_LOSSES = 8, 24, 16
SAMPLED = 64
"""Values of a parameter by whose sum it is known whether it moved."""
TOLD_AT = (1, 10, 50, 200, 1000)
"""Steps after which the facts are written, in case the program is killed later."""


class ProgramProbe(TorchProbe):
    """Fills the scene's `program`: entities, roles, timeline."""

    name = "program"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._models: dict[int, tuple[torch.nn.Module, Model, dict[int, tuple[torch.Tensor, torch.Tensor]]]] = {}
        self._optimizers: dict[int, tuple[torch.optim.Optimizer, Optimizer]] = {}
        self._schedules: dict[int, tuple[Any, Schedule]] = {}
        self._losses: dict[tuple[str, str | None], Loss] = {}
        self._values: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._reached: dict[int, int] = {}
        self._read: list[tuple[Origin, StateFile]] = []
        self._backwards = 0
        self._failed = False

    @property
    def program(self) -> Program:
        """What is known so far."""
        return self.scene.program

    # ---- moments

    def model_found(self, model: torch.nn.Module) -> None:
        """Counts its values and marks them, to know later whether they moved."""
        made = Model(self.scene.module_paths.get(id(model), type(model).__name__) or type(model).__name__)
        marks: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        for p in model.parameters():
            made.parameters += p.numel()
            if id(p) not in marks and p.numel() and p.device.type != "meta":
                marks[id(p)] = p, _mark(p)
        self._models[id(model)] = model, made, marks
        self.program.models.append(made)

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """Counts what it holds."""
        values = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
        made = Optimizer(type(optimizer).__name__, values=values, line=_line(here()))
        self._optimizers[id(optimizer)] = optimizer, made
        self.program.optimizers.append(made)

    def batch_given(self, batch: Any) -> None:
        self._note(Moment.BATCH)

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Counts the call by mode and by whether gradients are on."""
        gradients = torch.is_grad_enabled()
        if gradients:
            moment = Moment.FORWARD if model.training else Moment.FORWARD_IN_EVAL
        else:
            moment = Moment.EVALUATION_IN_TRAIN if model.training else Moment.EVALUATION
        self._note(moment)
        held = self._models.get(id(model))
        if held is not None:
            calls = held[1].calls
            if moment.value not in calls:
                given = [t for t in tensors_in([*args, *kwargs.values()]) if type(t) is torch.Tensor]
                held[1].inputs[moment.value] = ", ".join(_values(t) for t in given[:3])
            calls[moment.value] = calls.get(moment.value, 0) + 1

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Counts the call; its value is read at the end."""
        self._note(Moment.LOSS)
        count = self.program.timeline.courses[Moment.LOSS].count
        place = _line(here()) if count <= LINES else None
        key = (name, place) if place is not None else next((k for k in self._losses if k[0] == name), (name, None))
        loss = self._losses.get(key)
        if loss is None:
            if len(self._losses) >= MOST_LOSSES:
                return
            tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)]
            loss = self._losses[key] = Loss(name, place, shapes=tuple(_values(t) for t in tensors[:3]))
            self.program.losses.append(loss)
        loss.calls += 1
        if isinstance(value, torch.Tensor) and value.numel() == 1 and type(value) is torch.Tensor:
            first = self._values.get(id(loss), (value.detach(),))[0]
            self._values[id(loss)] = first, value.detach()

    def after_backward(self, loss: torch.Tensor) -> None:
        """Counts; in the first passes, looks at whom the gradients reach."""
        self._note(Moment.BACKWARD)
        self._backwards += 1
        if self._backwards <= LINES or self._backwards % 100 == 0:
            for _, _, marks in self._models.values():
                self._reached.update((k, p.numel()) for k, (p, _) in marks.items() if p.grad is not None)

    def cleared(self, owner: Any) -> None:
        self._note(Moment.CLEAR)

    def clipped(self) -> None:
        self._note(Moment.CLIP)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Counts; notes the learning rate where it turns."""
        self._note(Moment.STEP)
        held = self._optimizers.get(id(optimizer))
        if held is None:
            return
        held[1].steps += 1
        rate = optimizer.param_groups[0].get("lr") if optimizer.param_groups else None
        if isinstance(rate, (int, float)):
            add_rate(held[1].rates, held[1].steps, float(rate))
        if self.scene.step in TOLD_AT and optimizer is self.scene.optimizers[0]:
            self._tell()

    def scheduled(self, scheduler: Any) -> None:
        """Counts the steps of a schedule; the first is its own, where it is made."""
        held = self._schedules.get(id(scheduler))
        if held is None:
            made = Schedule(type(scheduler).__name__, made=_line(here()))
            self._schedules[id(scheduler)] = scheduler, made
            self.program.schedules.append(made)
            if _steps_itself(scheduler):
                return
            held = self._schedules[id(scheduler)]
        self._note(Moment.SCHEDULE)
        schedule = held[1]
        schedule.steps += 1
        if schedule.steps == 1:
            schedule.line = _line(here())
            told = horizon_of(scheduler)
            schedule.horizon, schedule.warmup, schedule.turns = told.total, told.warmup, told.turns
            schedule.made = told.defined or schedule.made

    def _ask_schedules(self) -> None:
        """Asks the functions of schedules where they are highest: after the run, when nobody is misled by a call."""
        for scheduler, schedule in self._schedules.values():
            last = getattr(scheduler, "last_epoch", None)
            schedule.reached = last if isinstance(last, int) else None
            if schedule.steps and schedule.warmup is None:
                taken = max((o.steps for o in self.program.optimizers), default=0)
                peak = peak_of(scheduler, schedule.steps, taken)
                schedule.peak = peak if peak is not None and peak > schedule.steps else None
                if schedule.horizon is None and taken:
                    schedule.horizon = length_like(scheduler, taken)

    def file_read(self, path: Any, value: Any) -> None:
        """A file of tensors."""
        self._note(Moment.LOAD)
        file = self._file(path, value, written=False)
        if file is not None:
            self._read.append((Origin(value), file))

    def file_written(self, path: Any, value: Any) -> None:
        """A file of tensors."""
        self._note(Moment.SAVE)
        self._file(path, value, written=True)

    def state_loaded(self, kind: str, owner: Any, state: Any, result: Any) -> None:
        """Which file it came from, where it came from one."""
        for origin, file in self._read:
            if kind not in file.taken and origin.holds(state):
                file.taken = (*file.taken, kind)

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """The facts are worth most then; lengths say nothing."""
        self._failed = True
        self._tell(whole=True)
        return ()

    def finish(self) -> Iterable[Finding]:
        """Writes the facts, and judges what they alone say."""
        self._ask_schedules()
        self._tell(whole=True)
        self.program.ended = not self._failed
        rank = self.scene.recorder.rank
        return [*t211_schedule_and_run.check(self.program, rank), *t212_rate_zero_at_first.check(self.program, rank)]

    # ---- what is kept

    def _note(self, moment: Moment) -> None:
        timeline = self.program.timeline
        course = timeline.courses.get(moment)
        line = _line(here()) if course is None or course.count < LINES else None
        timeline.note(moment, self.scene.step, line)

    def _file(self, path: Any, value: Any, *, written: bool) -> StateFile | None:
        if len(self.program.files) >= MOST_FILES:
            return None
        parts = tuple(str(k)[:40] for k in list(value)[:8]) if isinstance(value, Mapping) else ()
        file = StateFile(str(path)[:200] if isinstance(path, str) or hasattr(path, "__fspath__") else "(a file object)",
                         written, self.scene.step, sum(1 for _ in tensors_in(value)), parts, line=_line(here()))
        self.program.files.append(file)
        return file

    def _tell(self, *, whole: bool = False) -> None:
        if not self.program.timeline.courses:
            return
        stepped = {id(p) for o, _ in self._optimizers.values() for group in o.param_groups for p in group["params"]}
        for _, made, marks in self._models.values():
            held = [p for p, _ in marks.values()]
            made.trainable = sum(p.numel() for p in held if p.requires_grad)
            made.held = sum(p.numel() for p in held if id(p) in stepped)
            made.reached = sum(self._reached.get(k, 0) for k in marks)
            if whole:
                made.moved = sum(p.numel() for p, mark in marks.values() if bool(_mark(p) != mark))
        if whole:
            for loss in self._losses.values():
                if id(loss) in self._values:
                    loss.first, loss.last = (float(v) for v in self._values[id(loss)])
            for made, roles in roles_of(self.program):
                made.roles = roles
        self.scene.recorder.facts(facts(self.program, os.getcwd()))


def _steps_itself(scheduler: Any) -> bool:
    """Schedulers of torch step once when they are made; a plateau does not."""
    return not isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)


def add_rate(rates: list[tuple[int, float]], step: int, rate: float) -> None:
    """Keeps the first rate, the last, and those between at which its course turns; at most `MOST_RATES`."""
    if len(rates) < 2:
        rates.append((step, rate))
        return
    before, last = rates[-2][1], rates[-1][1]
    turns = (last - before) * (rate - last) < 0 or (last == before) != (rate == last)
    if turns and len(rates) < MOST_RATES:
        rates.append((step, rate))
    else:
        rates[-1] = step, rate


def _mark(p: torch.Tensor) -> torch.Tensor:
    """A number that changes when the parameter does, on its device: nothing waits for it."""
    with torch.no_grad():
        values = local(p.detach()).reshape(-1)
        some = values[:: max(1, values.numel() // SAMPLED)]
        some = some.double() if some.device.type == "cpu" else some.float()
        return some.square().sum() + some.sum()


def _values(t: torch.Tensor) -> str:
    """What a tensor holds, read once; one that is large or none of plain numbers by its shape alone."""
    plain = t.layout == torch.strided and t.device.type != "meta" and not t.is_quantized and not t.is_complex()
    if not plain or t.numel() > MOST_VALUES or type(t) not in (torch.Tensor, torch.nn.Parameter):
        return kind_of(tuple(t.shape), t.dtype)
    try:
        read = (t.detach().float() if t.dtype.is_floating_point else t.detach()).cpu().numpy()
    except RuntimeError:  # within torch.func it stands for many
        return kind_of(tuple(t.shape), t.dtype)
    return values_of(read, t.dtype)


def _line(place: Place | None) -> str | None:
    return f"{place.file}:{place.line}" if place is not None else None
