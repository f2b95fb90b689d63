"""What a model was trained on against what it is evaluated on, row by row (T711 to T718)."""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traindx_tools.finding import Finding
from traindx_tools.on_torch.lagged import capturing
from traindx_tools.on_torch.measures.batch import arguments, named_tensors
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.calls import EVALUATED, TRAINED, Calls, ModelCall, outputs_of
from traindx_tools.on_torch.measures.datasets import Datasets
from traindx_tools.on_torch.measures.joined_draw import Given, GivenBatch
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.once import Once
from traindx_tools.on_torch.measures.pools import Pools
from traindx_tools.on_torch.measures.row_losses import row_losses
from traindx_tools.on_torch.measures.row_values import answer_in, inputs_of, is_ids, profile_vector, row_matrix
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import (
    t711_data_leak,
    t712_evaluation_transform,
    t713_part_unlearned,
    t714_rows_as_data,
    t715_rows_never_drawn,
    t716_rows_of_jumps,
    t717_target_position,
    t718_rows_change,
    t721_classes_renumbered,
)
from traindx_tools.on_torch.rules.rows import ModelRows
from traindx_tools.on_torch.rules.t711_data_leak import Overlap
from traindx_tools.rows.book import SUMS, Answers, Book
from traindx_tools.rows.groupings import Grouping
from traindx_tools.rows.jumps import StepSeen
from traindx_tools.rows.overlap import Overlaps, twins_expected
from traindx_tools.rows.positions import TargetShift, target_shift
from traindx_tools.rows.profile import Profile
from traindx_tools.rows.relabelled import Answered
from traindx_tools.rows.spent import Spent

MOST_CALLS = 50_000
"""Calls after which no more are looked at."""
POOLS = 1000
"""Numbers of datasets from which on they are arrays of the program."""
JUDGED_AT = (300, 3000)
"""Steps after which what can be known by then is told, in case the program is killed later."""
KEPT_PROFILES, KEPT_STEPS = 200, 20_000
FEWEST_ROWS = 4
"""Rows of an evaluated batch that is compared with trained ones."""
MOST_TARGETS = 2**16
"""Entries of a target that are compared with the tokens of its input."""


@dataclass(eq=False)
class _Model:
    """What was seen of one model."""

    trained: Book = field(default_factory=Book)
    evaluated: Book = field(default_factory=Book)
    profiles: dict[tuple[str, str], deque[Profile]] = field(default_factory=dict)
    steps: deque[StepSeen] = field(default_factory=lambda: deque(maxlen=KEPT_STEPS))
    shifts: Counter[int | None] = field(default_factory=Counter)
    """Batches by the shift of their targets; None where none fits."""
    shift: dict[int, TargetShift] = field(default_factory=dict)
    measured: Counter[bool] = field(default_factory=Counter)
    overlaps: Overlaps = field(default_factory=Overlaps)
    answered: Answered = field(default_factory=Answered)


class RowProbe(TorchProbe):
    """Rows, labels and losses of each training step and each evaluation, in bounded memory and time."""

    name = "rows"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._spent = Spent()
        self._cadence = Cadence.chosen(scene.options, "rows", 12, 20)
        self._once = Once()
        self._late: Late[tuple[str, ModelCall, Any]] = Late()
        self._calls, self._given, self._datasets, self._pools = Calls(), Given(), Datasets(), Pools()
        self._count = 0
        self._models: dict[int, _Model] = {}
        self._current: ModelCall | None = None

    def next_look(self) -> int:
        """Every step, while there is time for it."""
        return self.scene.step if self._spent.open and self._count < MOST_CALLS else self.scene.step + 50

    # ---- the moments

    def batch_given(self, batch: Any) -> None:
        """Rows of a batch, by their numbers in the dataset."""
        draw = self.scene.draw
        with self._spent.counted():
            self._given.give(draw, batch)
            if draw is not None:
                self._datasets.note(draw)

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Values of the rows that a model gets."""
        self._current = None
        if not any(m is model for m in self.scene.models):
            return
        grad = torch.is_grad_enabled()
        with self._spent.counted(), torch.no_grad():
            named = arguments(model, args, kwargs)
            inputs = inputs_of(named)
            given = self._given.take(inputs)
            if inputs and self._spent.open and self._count < MOST_CALLS:
                self._count += 1
                if not grad:  # a long evaluation has no step at whose end what arrived is read
                    self._read()
                self._measure(model, inputs, given, grad, answer_in(named))

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """What the output is, so that it is known again in the graph of a loss."""
        call = self._current
        if call is not None and call.grad:
            with self._spent.counted():
                call.outputs = tuple(weakref.ref(t) for t in outputs_of(output))
        elif call is not None and call.counted:
            with self._spent.counted(), torch.no_grad():
                scores = next((t for _, t in named_tensors(output) if t.ndim == 2 and len(t) == call.rows
                               and t.shape[1] > 1 and t.is_floating_point()), None)
                if scores is not None:
                    self._send("named", call, scores.detach().argmax(1).to(torch.float32))

    def before_backward(self, loss: torch.Tensor) -> None:
        """Labels and losses of the rows that are trained on."""
        with self._spent.counted(), torch.no_grad():
            trained = self._calls.trained_by(loss)
            if len(trained) == 1:
                self._ask(trained[0], loss)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived."""
        with self._spent.counted():
            self._read()
            if self.scene.step in JUDGED_AT and len(self.scene.optimizers) == 1:
                for finding in self._once.new(self._early()):
                    self.scene.recorder.finding(finding)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._calls.settle(ended=True)
        self._read(wait=True)
        yield from self._once.new(self._findings())

    # ---- measuring

    def _measure(self, model: torch.nn.Module, inputs: dict[str, torch.Tensor], given: GivenBatch | None, grad: bool,
                 answer: torch.Tensor | None) -> None:
        known = self._models.setdefault(id(model), _Model())
        tensors = list(inputs.values())
        if capturing(tensors[0].device):
            return
        call = ModelCall(id(model), self._count, self.scene.step + 1, len(tensors[0]), grad, model.training,
                         given.draw if given is not None else None)
        if call.draw is None and len(tensors) == 1:
            self._pools.look(tensors[0])
            call.row_shape = tuple(tensors[0].shape[1:])
        matrix, call.whole = row_matrix(tensors)
        call.ids = call.whole and len(tensors) == 1 and is_ids(tensors[0])
        self._send("values", call, matrix)
        label = given.label(inputs) if given is not None else None
        if label is None and not grad and answer is not None and answer.numel() == call.rows:
            label = answer
        if label is not None:
            call.counted = not label.is_floating_point()
            self._send("label", call, label.detach().reshape(-1).to(torch.float32, copy=True))
        if self._cadence.due(known.measured[grad]):
            for name, t in inputs.items():
                row_shape, dtype = tuple(t.shape[1:]), str(t.dtype).removeprefix("torch.")
                self._send("profile", call, profile_vector(t), (name, row_shape, dtype, is_ids(t)))
        known.measured[grad] += 1
        self._calls.begin(call)
        self._current = call

    def _send(self, what: str, call: ModelCall, value: torch.Tensor, more: Any = None) -> None:
        call.waiting += 1
        self._late.send((what, call, more), value)

    def _ask(self, call: ModelCall, loss: torch.Tensor) -> None:
        said = row_losses(loss, call.rows)
        if said is None:
            return
        call.kind = said.kind
        self._send("answers", call, said.columns)
        target = said.target
        if call.ids and target is not None and target.numel() % call.rows == 0 and target.numel() <= MOST_TARGETS:
            call.ignored = said.ignored
            self._send("target", call, target.reshape(call.rows, -1))

    # ---- reading

    def _read(self, *, wait: bool = False) -> None:
        for (what, call, more), values in self._late.arrived(wait=wait):
            call.waiting -= 1
            if what == "profile":
                name, row_shape, dtype, ids = more
                call.profiles[name] = Profile.of(name, row_shape, dtype, values, ids, call.rows)
            else:
                setattr(call, what, values)
        for call in self._calls.done():
            self._put(call)

    def _put(self, call: ModelCall) -> None:
        seen = self._models[call.model]
        if call.role not in (TRAINED, EVALUATED):
            return
        for name, profile in call.profiles.items():
            seen.profiles.setdefault((call.role, name), deque(maxlen=KEPT_PROFILES)).append(profile)
        if call.values is None:
            return
        book = seen.trained if call.role == TRAINED else seen.evaluated
        dataset = self._datasets.number(call.draw) if call.draw is not None else None
        numbers = call.draw.base if call.draw is not None and dataset is not None else None
        hashes = [hash(row.tobytes()) for row in call.values[:, SUMS:].astype(np.float32)]
        pool = self._pools.rows_of(hashes, call.row_shape) if call.row_shape is not None else None
        if pool is not None:
            dataset, numbers = POOLS + pool[0], pool[2]
            if call.label is None and pool[1].label is not None:
                call.label, call.counted = pool[1].label[pool[2]], pool[1].counted
        answers = _answers(call)
        book.ids = call.ids
        slots = book.take(call.values, hashes, dataset, numbers, answers, call.whole)
        if answers is not None and call.answers is not None and call.role == TRAINED:
            self._step(seen, call, answers, slots)
        if call.role == EVALUATED and call.named is not None and call.label is not None:
            seen.answered.take(call.step - 1, call.label, call.named)
        if call.role == EVALUATED and len(hashes) >= FEWEST_ROWS:
            known = [] if numbers is None or dataset is None else [(dataset, int(n)) for n in numbers]
            seen.overlaps.take(seen.trained, hashes, known)

    def _step(self, seen: _Model, call: ModelCall, answers: Answers, slots: NDArray[np.int64]) -> None:
        lost = np.where(np.isfinite(answers.loss), answers.loss, 0.0)
        top, total = int(lost.argmax()), float(lost.sum())
        if np.isfinite(answers.loss).any():
            seen.steps.append(StepSeen(call.step, total / len(lost), int(slots[top]), float(lost[top]),
                                       float(lost[top]) / total if total > 0 else 0.0))
        if call.target is not None and call.values is not None:
            ids = call.values[:, SUMS:].astype(np.int64)
            found = target_shift(ids, call.target.astype(np.int64), call.ignored)
            seen.shifts[None if found is None else found.shift] += 1
            if found is not None:
                seen.shift[found.shift] = found

    # ---- judging

    def _early(self) -> Iterator[Finding]:
        """What does not need the end of the training: inputs and places of targets, no losses."""
        for key, seen in self._models.items():
            made = self._rows_of(key, seen)
            for rule in (t712_evaluation_transform, t717_target_position, t718_rows_change):
                yield from (f for f in rule.check(made) if f.severity.rank >= 2)

    def _findings(self) -> Iterator[Finding]:
        for key, seen in self._models.items():
            made = self._rows_of(key, seen)
            yield from t711_data_leak.check(self._overlap(seen))
            yield from t712_evaluation_transform.check(made)
            yield from t713_part_unlearned.check(made)
            yield from t714_rows_as_data.check(made)
            yield from t716_rows_of_jumps.check(made)
            yield from t717_target_position.check(made)
            yield from t718_rows_change.check(made)
            yield from t721_classes_renumbered.check(made)
        yield from t715_rows_never_drawn.check(self._datasets.coverages, self.scene.step, self.scene.recorder.rank)

    def _overlap(self, seen: _Model) -> Overlap:
        n = seen.overlaps.counted(seen.trained)
        return Overlap(n["batches"], n["rows"], n["known"], n["all"], n["part"], n["part rows"], n["part known"],
                       self.scene.step, self.scene.recorder.rank, twins_expected(seen.trained))

    def _rows_of(self, key: int, seen: _Model) -> ModelRows:
        groups: tuple[Grouping, ...] = ()
        dataset = ""
        if len(seen.trained.numbers) == 1:
            number = next(iter(seen.trained.numbers))
            dataset, groups = self._datasets.of(number) if number < POOLS else (self._pools.name(number - POOLS), ())
        return ModelRows(
            self.scene.module_paths.get(key) or self._name(key), dataset, seen.trained, seen.evaluated,
            {k: tuple(v) for k, v in seen.profiles.items()}, groups, tuple(seen.steps), seen.shifts, seen.shift,
            self.scene.step, self.scene.recorder.rank, seen.answered)

    def _name(self, key: int) -> str:
        return next((type(m).__name__ for m in self.scene.models if id(m) == key), "model")


def _answers(call: ModelCall) -> Answers | None:
    """What the loss said, or the labels of the batch where it says nothing (evaluations, losses of one's own)."""
    if call.answers is not None:
        return Answers(call.kind, *call.answers.T)
    if call.label is None:
        return None
    unknown = np.full(call.rows, np.nan)
    return Answers("classes" if call.counted else "squared", call.label, unknown, unknown)
