"""Always on: on which side rows of ids are padded, and whether padding in front changes their answers (T348)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.captured.call import KeptCall, NotKept, kept, names_of, plain, rows_of
from traindx_tools.on_torch.captured.examine import small_enough
from traindx_tools.on_torch.captured.padding_before import begins_in, begins_of, is_ids, padding_before
from traindx_tools.on_torch.captured.sandbox import unnoticed
from traindx_tools.on_torch.captured.trial import Trial
from traindx_tools.on_torch.measures.batch import arguments
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t348_padding_before
from traindx_tools.on_torch.rules.t348_padding_before import Sides
from traindx_tools.on_torch.snapshot.tape import tensors_of
from traindx_tools.on_torch.speed.compilations import compiles, watch_compile
from traindx_tools.on_torch.world import world_size

MOST_ROWS, MOST_PLACES, MOST_MODELS, MOST_LOOKS = 64, 512, 4, 32
ROOM = 2**24
"""Bytes of kept arguments."""


@dataclass
class _Model:
    """What one model was called with. `looks`: calls without gradients that were looked at."""

    model: torch.nn.Module
    calls: int = 0
    before: int = 0
    behind: int = 0
    looks: int = 0
    widths: set[int] = field(default_factory=set)
    """Of rows in training: rows of one width that are padded in front end at one position, as in a window."""
    trained: KeptCall | None = None
    evaluated: KeptCall | None = None
    room: list[int] = field(default_factory=lambda: [ROOM])


class PaddingSideProbe(TorchProbe):
    """Looks at the ids of some training calls, and keeps a call whose rows are padded in front."""

    name = "padding-side"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        watch_compile()
        self._cadence = Cadence.chosen(scene.options, "padding_side", 12, 50)
        self._late: Late[tuple[_Model, tuple[int, int]]] = Late()
        self._models: dict[int, _Model] = {}

    def next_look(self) -> int:
        """The next measured step."""
        return self.scene.step if self._late else self._cadence.next_due(self.scene.step)

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Looks at the ids of a call."""
        training = torch.is_grad_enabled() and model.training
        if training and not self.scene.due(self._cadence, self.scene.step):
            return
        seen = self._models.get(id(model))
        if seen is None and training and len(self._models) < MOST_MODELS:
            seen = self._models[id(model)] = _Model(model)
        if seen is None or (not training and (seen.evaluated or seen.looks >= MOST_LOOKS)):
            return
        ids = next((t.detach() for n, t in arguments(model, args, kwargs).items() if is_ids(n, t)), None)
        if ids is None:
            return
        if training:
            part = ids[:MOST_ROWS, :MOST_PLACES] if ids.shape[1] <= MOST_PLACES else ids[:0]
            seen.widths.add(int(ids.shape[1]))
            self._late.send((seen, (int(part.shape[0]), int(part.shape[1]))), part.reshape(-1).to(torch.float64))
        else:
            seen.looks += 1
        if (seen.trained if training else seen.evaluated) is None and ids.device.type == "cpu" and len(ids) > 1 \
                and begins_of(ids) is not None:
            self._keep(seen, training, args, kwargs)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived."""
        self._read(wait=False)

    def finish(self) -> Iterable[Finding]:
        """Asks a copy, and judges."""
        self._read(wait=True)
        if compiles() or world_size() > 1:
            return
        for seen in self._models.values():
            yield from t348_padding_before.check(self._sides(seen))

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """Nothing is asked after an error."""
        self._models.clear()
        return ()

    def _sides(self, seen: _Model) -> Sides | None:
        both = seen.before > 0
        if both and len(seen.widths) < 2:
            return None
        call = seen.evaluated or (seen.trained if both else None)
        if call is None or not self.scene.step:
            return None
        try:
            small_enough(call.model)
            with unnoticed(call.model) as set_back:
                answer = padding_before(Trial(call, set_back))
        except NotKept:
            return None
        return None if answer is None else Sides(call.path, seen.calls, seen.before, seen.behind, answer, both,
                                                 self.scene.step, self.scene.recorder.rank)

    def _keep(self, seen: _Model, training: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not plain((args, kwargs)):
            return
        try:
            count = rows_of(tensors_of((args, kwargs)))
            copied = kept((args, kwargs), seen.room, count)
        except NotKept:
            return
        path = self.scene.module_paths.get(id(seen.model), type(seen.model).__name__)
        call = KeptCall(seen.model, path, copied[0], copied[1], 0, count, names_of(seen.model))
        if begins_in(call) is None:  # of many rows the first are kept
            return
        if training:
            seen.trained = call
        else:
            seen.evaluated = call

    def _read(self, *, wait: bool) -> None:
        for (seen, shape), flat in self._late.arrived(wait=wait):
            if not shape[0]:
                continue
            ids = torch.from_numpy(np.asarray(flat, np.float64).reshape(shape)).to(torch.int64)
            seen.calls += 1
            seen.before += begins_of(ids) is not None
            seen.behind += begins_of(ids.flip(1)) is not None
