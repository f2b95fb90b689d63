"""Rows of a training DataLoader at each visit: the same to the bit, although they are drawn anew (T720)."""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.batch import named_tensors
from traindx_tools.on_torch.measures.drawn_anew import asked_twice
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t720_random_repeats
from traindx_tools.on_torch.rules.t720_random_repeats import Repeats
from traindx_tools.rows.spent import Spent

MOST_ROWS = 512
"""Rows of a dataset that are followed."""
MOST_BYTES = 2**14
"""Bytes of a row that are looked at, spread over it."""
MOST_DATASETS = 4
MOST_ATTRIBUTES = 64


@dataclass(eq=False)
class _Dataset:
    """What was seen of one dataset."""

    whole: Any
    """A weak reference, or what gives the dataset itself."""
    name: str
    first: dict[int, int] = field(default_factory=dict)
    """The checksum of each followed row at its first visit."""
    epoch_of: dict[int, int] = field(default_factory=dict)
    epochs: set[int] = field(default_factory=set)
    again: int = 0
    same: int = 0
    trained: bool = False
    attributes: dict[str, int] = field(default_factory=dict)
    """Whole numbers that the dataset held in the first epoch."""
    told: dict[str, Any] | None = None
    """What it answered."""


class RepeatsProbe(TorchProbe):
    """Augmentation and drawn samples that are the same in each epoch."""

    name = "repeats"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._spent = Spent(1.0, 0.01)
        self._known: list[_Dataset] = []
        self._last: _Dataset | None = None

    def batch_given(self, batch: Any) -> None:
        """The rows of a batch, by their numbers in the dataset."""
        self._last = None
        draw = self.scene.draw
        if draw is None or not self._spent.open:
            return
        with self._spent.counted(), torch.no_grad():
            seen = self._of(draw.whole)
            if seen is None:
                return
            self._last = seen
            seen.epochs.add(draw.epoch)
            wanted = [(k, int(r)) for k, r in enumerate(draw.base) if int(r) in seen.first
                      or len(seen.first) < MOST_ROWS]
            if not wanted:
                return
            sums = _checksums(batch, len(draw.base), [k for k, _ in wanted])
            for (_, row), value in zip(wanted, sums, strict=False):
                self._visit(seen, row, value, draw.epoch)
            self._ask(seen, draw.whole)

    def before_backward(self, loss: torch.Tensor) -> None:
        """What was given last is trained on."""
        if self._last is not None:
            self._last.trained = True

    def finish(self) -> Iterable[Finding]:
        """Judges the datasets whose rows never changed."""
        for seen in self._known:
            if seen.trained and seen.told:
                yield from t720_random_repeats.check(Repeats(
                    seen.name, seen.same, seen.again, len(seen.epochs), bool(seen.told.get("anew")),
                    str(seen.told.get("by") or ""), self.scene.step, self.scene.recorder.rank))

    def _ask(self, seen: _Dataset, whole: Any) -> None:
        """Asks a dataset whose rows were the same so far whether it makes them anew, once.

        Only where the program runs in a protected copy: an item of a dataset may write files as it is made.
        """
        may = self.scene.options.get("protected") and seen.trained and seen.told is None
        if may and t720_random_repeats.worth_asking(seen.same, seen.again):
            now = _whole_numbers(whole)
            changed = {n: v for n, v in seen.attributes.items() if now.get(n, v) != v}
            seen.told = asked_twice(whole, list(seen.first), changed)

    def _of(self, whole: Any) -> _Dataset | None:
        found = next((s for s in self._known if s.whole() is whole), None)
        if found is None and len(self._known) < MOST_DATASETS:
            try:
                reference: Any = weakref.ref(whole)
            except TypeError:
                return None
            found = _Dataset(reference, type(whole).__name__, attributes=_whole_numbers(whole))
            self._known.append(found)
        return found

    def _visit(self, seen: _Dataset, row: int, value: int, epoch: int) -> None:
        if row not in seen.first:
            seen.first[row], seen.epoch_of[row] = value, epoch
        elif seen.epoch_of[row] != epoch:
            seen.again += 1
            seen.same += value == seen.first[row]


def _whole_numbers(dataset: Any) -> dict[str, int]:
    fields = list(getattr(dataset, "__dict__", {}).items())[:MOST_ATTRIBUTES]
    return {n: v for n, v in fields if type(v) is int}


def _checksums(batch: Any, rows: int, which: list[int]) -> list[int]:
    """One number for each of these rows, over all tensors of the batch that have one entry a row."""
    sums = [0] * len(which)
    for _, t in named_tensors(batch):
        if t.ndim == 0 or len(t) != rows or t.device.type != "cpu" or not t.numel() or t.is_complex():
            continue
        flat = t.detach().reshape(rows, -1)
        step = max(1, flat.shape[1] * flat.element_size() // MOST_BYTES)
        values = np.ascontiguousarray(_array(flat[which][:, ::step]))
        sums = [zlib.crc32(values[k].tobytes(), s) for k, s in enumerate(sums)]
    return sums


def _array(t: torch.Tensor) -> Any:
    return t.to(torch.float32).numpy() if t.dtype is torch.bfloat16 else t.numpy()
