"""Always on: what rows of ids and targets are filled up with, against what loss and embedding take for it (T725)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.batch import SIDE, arguments
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.probes.losses import bound
from traindx_tools.on_torch.rules import t725_padding_ids_differ
from traindx_tools.on_torch.rules.t725_padding_ids_differ import PaddingRoles
from traindx_tools.rows.filling import look

MOST_ROWS, MOST_PLACES, SHORTEST = 64, 512, 4
_LOSSES = ("cross_entropy", "nll_loss")


class PaddingRolesProbe(TorchProbe):
    """Looks at the first steps and at some later ones."""

    name = "padding-roles"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._cadence = Cadence.chosen(scene.options, "padding_roles", 12, 50)
        self._late: Late[tuple[PaddingRoles, tuple[int, int], tuple[int, int]]] = Late()
        self._calls = 0
        self._ids: torch.Tensor | None = None
        self._embedding: int | None = None
        self._seen: dict[tuple[int | None, int | None], PaddingRoles] = {}

    def next_look(self) -> int:
        """The next measured step."""
        return self.scene.step if self._late else self._cadence.next_due(self.scene.step)

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keeps the ids of a training call until its loss."""
        if not torch.is_grad_enabled() or not self.scene.due(self._cadence, self._calls):
            return
        found = [t.detach() for n, t in arguments(model, args, kwargs).items() if _is_ids(n, t)]
        if found:
            self._ids, self._embedding = found[-1], _padding_of(model)

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Sends the ids and the targets that stand at the same places."""
        ids, self._ids = (self._ids, None) if name in _LOSSES else (None, self._ids)
        if ids is None:
            return
        self._calls += 1
        given = bound(name, args, kwargs)
        target = given.get("target")
        if given.get("weight") is not None or given.get("reduction") == "none" or not isinstance(target, torch.Tensor):
            return
        rows = _rows(ids, target.detach())
        if rows is None or target.is_floating_point():
            return
        ignored = given.get("ignore_index")
        told = ignored if isinstance(ignored, int) and ignored >= 0 else None
        seen = self._seen.setdefault((told, self._embedding), PaddingRoles(
            ignored=told, embedding=self._embedding, step=self.scene.step + 1))
        shapes = [(int(r.shape[0]), int(r.shape[1])) for r in rows]
        self._late.send((seen, shapes[0], shapes[1]), torch.cat([r.reshape(-1).to(torch.float64) for r in rows]))

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived."""
        self._read(wait=False)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._read(wait=True)
        yield from t725_padding_ids_differ.check(list(self._seen.values()), self.scene.recorder.rank)

    def _read(self, *, wait: bool) -> None:
        for (seen, one, two), flat in self._late.arrived(wait=wait):
            values = np.asarray(flat, np.float64)
            cut = one[0] * one[1]
            look(seen.ids, values[:cut].reshape(one))
            look(seen.targets, values[cut:].reshape(two))


def _is_ids(name: str, tensor: torch.Tensor) -> bool:
    return (tensor.ndim == 2 and tensor.shape[1] >= SHORTEST and tensor.dtype in (torch.int64, torch.int32)
            and not any(word in name.lower() for word in SIDE))


def _padding_of(model: torch.nn.Module) -> int | None:
    """The padding of the model's embeddings; None where they have none, or several."""
    told = {m.padding_idx for m in model.modules() if isinstance(m, torch.nn.Embedding) and m.padding_idx is not None}
    return next(iter(told)) if len(told) == 1 else None


def _rows(ids: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Ids and targets as rows: as many places as the ids, or one less; the last argument is what the targets follow."""
    rows, places = ids.shape
    if target.numel() not in (rows * places, rows * (places - 1)) or target.device != ids.device:
        return None
    return ids[:MOST_ROWS, :MOST_PLACES], target.reshape(rows, -1)[:MOST_ROWS, :MOST_PLACES]
