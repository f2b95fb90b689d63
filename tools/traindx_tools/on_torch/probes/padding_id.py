"""Ids and targets at the same places: whether the padding id is a real one, whether an end is ever asked for (T723)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.batch import SIDE, arguments
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.loss_graph import targets
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t723_padding_id
from traindx_tools.on_torch.rules.t723_padding_id import PaddingSeen

MOST_ROWS, MOST_PLACES, SHORTEST = 64, 256, 4
SAME = 0.9
"""Share of the targets that are the input's own ids, from which a model predicts its input: a few are masked or cut."""
MASKED = 0.5
"""Of the places that are asked for, where one id stands in the inputs: a mask, and others are ignored on purpose."""
_Ids = NDArray[np.float64]


class PaddingIdProbe(TorchProbe):
    """Looks at the first steps and at some later ones."""

    name = "padding-id"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._cadence = Cadence.chosen(scene.options, "padding_id", 12, 50)
        self._late: Late[tuple[int, int | None, tuple[int, int], tuple[int, int]]] = Late()
        self._backwards = 0
        self._ids: torch.Tensor | None = None
        self._seen = PaddingSeen()

    def next_look(self) -> int:
        """The next measured step."""
        return self.scene.step if self._late else self._cadence.next_due(self.scene.step)

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keeps the ids of a training call until its backward pass."""
        if torch.is_grad_enabled() and self.scene.due(self._cadence, self._backwards):
            found = next((t.detach() for n, t in arguments(model, args, kwargs).items() if _is_ids(n, t)), None)
            self._ids = found if found is not None else self._ids  # a loss that is a module is called too

    def before_backward(self, loss: torch.Tensor) -> None:
        """Sends the ids and the targets of the first term that stand at the same places."""
        self._backwards += 1
        ids, self._ids = self._ids, None
        if ids is None:
            return
        for target in targets(loss):
            found = _beside(ids, target.values) if target.classes is not None else None
            if found is not None and ids.device == found.device:
                rows = ids[:MOST_ROWS, :MOST_PLACES], found[:MOST_ROWS, :MOST_PLACES]
                shapes = [(int(r.shape[0]), int(r.shape[1])) for r in rows]
                flat = torch.cat([r.reshape(-1).to(torch.float32) for r in rows])
                self._late.send((self.scene.step + 1, target.ignored, shapes[0], shapes[1]), flat)
                return

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived."""
        self._read(wait=False)

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._read(wait=True)
        yield from t723_padding_id.check([self._seen], self.scene.recorder.rank)

    def _read(self, *, wait: bool) -> None:
        for (step, ignored, one, two), flat in self._late.arrived(wait=wait):
            cut = one[0] * one[1]
            look(self._seen, step, ignored, flat[:cut].reshape(one), flat[cut:].reshape(two))


def _is_ids(name: str, tensor: torch.Tensor) -> bool:
    return (tensor.ndim == 2 and tensor.shape[1] >= SHORTEST and tensor.dtype in (torch.int64, torch.int32)
            and not any(word in name.lower() for word in SIDE))


def _beside(ids: torch.Tensor, values: torch.Tensor) -> torch.Tensor | None:
    """The targets as rows: as many places as the ids, or one less."""
    rows, places = ids.shape
    if values.numel() in (rows * places, rows * (places - 1)):
        return values.reshape(rows, -1)
    return None


def look(seen: PaddingSeen, step: int, ignored: int | None, ids: _Ids, target: _Ids) -> None:
    """Adds one batch. `ids` of shape (B, T), `target` of shape (B, T) or (B, T - 1)."""
    seen.step = seen.step or step
    shift = _shift(ids, target, ignored)
    if ignored is not None and ignored >= 0:
        seen.ignored = ignored
        if shift is not None:
            between, between_targets = _between(ids, ignored), _between(target, ignored)
            seen.samples += bool(between.any() and between_targets.any())
            seen.between += int(between.sum())
            seen.real += int((ids != ignored).sum())
            seen.targets_between += int(between_targets.sum())
            seen.targets += int((target != ignored).sum())
        elif ids.shape == target.shape:  # classes of the places, numbered on their own
            _beside_padding(seen, ids, target, ignored)
    if shift is not None:
        _ends(seen, ids, target, ignored, shift)


def _between(ids: _Ids, value: int) -> NDArray[np.bool_]:
    """Where a value stands with another one somewhere before and somewhere behind it in its row."""
    other = ids != value
    before = np.logical_or.accumulate(other, axis=1)
    behind = np.logical_or.accumulate(other[:, ::-1], axis=1)[:, ::-1]
    found: NDArray[np.bool_] = ~other & before & behind
    return found


def _beside_padding(seen: PaddingSeen, ids: _Ids, target: _Ids, ignored: int) -> None:
    """Rows that one id fills up behind: whether the ignored class stands there, and where else it stands."""
    ends = ids[:, -1]
    same = ids[:, ::-1] == ends[:, None]
    width = np.logical_and.accumulate(same, axis=1).sum(1)
    filler = Counter(ends[width >= 2].tolist()).most_common(1)
    if not filler:
        return
    rows = (ends == filler[0][0]) & (width < ids.shape[1])
    behind = np.arange(ids.shape[1])[None, :] >= (ids.shape[1] - width)[:, None]
    filled, real = behind & rows[:, None], ~behind & rows[:, None]
    if filled.sum() < SHORTEST or not (target[filled] == ignored).all():
        return
    asked = ids[real & (target != ignored)]
    if not len(asked) or Counter(asked.tolist()).most_common(1)[0][1] > MASKED * len(asked):
        return
    seen.rows_filled += int(rows.sum())
    seen.places += int(real.sum())
    meant = int((target[real] == ignored).sum())
    seen.meant += meant
    seen.steps_meant += bool(meant)
    seen.classes |= set(target[real].astype(int).tolist())


def _shift(ids: _Ids, target: _Ids, ignored: int | None) -> int | None:
    """By how many places the targets are the inputs' own ids: 0, 1 (the next id), or None where they are not."""
    asked = target != (-100 if ignored is None else ignored)
    for shift in (1, 0):
        width = min(target.shape[1], ids.shape[1] - shift)
        mine, theirs = asked[:, :width], ids[:, shift:shift + width] == target[:, :width]
        if mine.sum() >= SHORTEST and theirs[mine].mean() >= SAME:
            return shift
    return None


def _ends(seen: PaddingSeen, ids: _Ids, target: _Ids, ignored: int | None, shift: int) -> None:
    """Rows that are filled up: their last id, what fills them, whether the place behind the last id is asked for."""
    for row, asked in zip(ids, target, strict=True):
        other = np.flatnonzero(row != row[-1])
        end = int(other[-1]) + 1 if len(other) else 0
        if not 0 < end <= len(row) - 2 or not 0 <= end - shift < len(asked):
            continue
        seen.rows += 1
        seen.filled[int(row[-1])] += 1
        seen.last[int(row[end - 1])] += 1
        seen.unasked += bool(asked[end - shift] == (-100 if ignored is None else ignored))
