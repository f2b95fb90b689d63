"""Always on: whether the mask of a model is that of what its rows are filled up with (T727)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.captured.call import KeptCall, NotKept, kept, names_of, plain, rows_of
from traindx_tools.on_torch.captured.compared_ids import compared_with
from traindx_tools.on_torch.captured.examine import small_enough
from traindx_tools.on_torch.captured.padding import cut_off, lengths_of
from traindx_tools.on_torch.captured.padding_before import is_ids
from traindx_tools.on_torch.captured.sandbox import unnoticed
from traindx_tools.on_torch.captured.trial import Trial
from traindx_tools.on_torch.measures.batch import arguments
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t727_mask_of_another_padding
from traindx_tools.on_torch.rules.t727_mask_of_another_padding import Masks
from traindx_tools.on_torch.snapshot.tape import tensors_of
from traindx_tools.on_torch.speed.compilations import compiles, watch_compile
from traindx_tools.on_torch.world import world_size

MOST_ROWS, MOST_PLACES, MOST_MODELS, MOST_BATCHES = 64, 512, 4, 24
ROOM = 2**24
"""Bytes of kept arguments."""


class PaddingMasksProbe(TorchProbe):
    """Looks at ids and masks of some training calls, and asks a copy at the end."""

    name = "padding-masks"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        watch_compile()
        self._cadence = Cadence.chosen(scene.options, "padding_masks", 12, 50)
        self._late: Late[tuple[Masks, tuple[str, ...], tuple[int, int]]] = Late()
        self._models: dict[int, Masks] = {}
        self._calls: dict[int, KeptCall] = {}
        self._room = [ROOM]

    def next_look(self) -> int:
        """The next measured step."""
        return self.scene.step if self._late else self._cadence.next_due(self.scene.step)

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Looks at the arguments of a training call."""
        if not torch.is_grad_enabled() or not model.training or not self.scene.due(self._cadence, self.scene.step):
            return
        given = arguments(model, args, kwargs)
        name, ids = next(((n, t.detach()) for n, t in given.items() if is_ids(n, t)), ("", None))
        if ids is None or ids.shape[1] > MOST_PLACES or (id(model) not in self._models
                                                         and len(self._models) >= MOST_MODELS):
            return
        path = self.scene.module_paths.get(id(model), type(model).__name__)
        seen = self._models.setdefault(id(model), Masks(path, name))
        if len(seen.batches) >= MOST_BATCHES:
            return
        masks = {n: t.detach()[:MOST_ROWS] for n, t in given.items() if n != name and t.shape == ids.shape
                 and t.device == ids.device and not t.is_complex()}
        seen.bools |= {n for n, t in masks.items() if t.dtype == torch.bool}
        ids = ids[:MOST_ROWS]
        self._late.send((seen, tuple(masks), (len(ids), ids.shape[1])),
                        torch.stack([t.to(torch.float64) for t in (ids, *masks.values())]))
        self._keep(model, path, args, kwargs)

    def _keep(self, model: torch.nn.Module, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if id(model) in self._calls or not plain((args, kwargs)):
            return
        try:
            count = rows_of(tensors_of((args, kwargs)))
            copied = kept((args, kwargs), self._room, count)
        except NotKept:
            return
        self._calls[id(model)] = KeptCall(model, path, copied[0], copied[1], 0, count, names_of(model))

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived."""
        self._read(wait=False)

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """Nothing is asked after an error."""
        self._models.clear()
        return ()

    def finish(self) -> Iterable[Finding]:
        """Asks a copy of those whose rows are filled up, and judges."""
        self._read(wait=True)
        if compiles() or world_size() > 1:
            return
        for key, seen in self._models.items():
            if seen.filling.filler is not None and key in self._calls:
                self._ask(seen, self._calls[key], seen.filling.filler)
        yield from t727_mask_of_another_padding.check(list(self._models.values()), self.scene.recorder.rank)

    def _ask(self, seen: Masks, call: KeptCall, filler: int) -> None:
        seen.step = self.scene.step
        try:
            small_enough(call.model)
            with unnoticed(call.model) as set_back:
                trial = Trial(call, set_back)
                ids = trial.call.tensors.get(seen.argument)
                if ids is None:
                    return
                changed = cut_off(trial, seen.argument, filler, lengths_of(ids, filler))
                seen.change = changed.largest if changed is not None else 0.0
                seen.compared = frozenset(compared_with(trial, seen.argument)) if seen.change else frozenset()
        except NotKept:
            seen.change = 0.0

    def _read(self, *, wait: bool) -> None:
        for (seen, names, shape), flat in self._late.arrived(wait=wait):
            several = np.asarray(flat, np.float64).reshape(1 + len(names), *shape)
            masks = {n: m.astype(np.int64) for n, m in zip(names, several[1:], strict=True)
                     if ((m == 0) | (m == 1)).all()}
            seen.look(several[0].astype(np.int64), masks)
