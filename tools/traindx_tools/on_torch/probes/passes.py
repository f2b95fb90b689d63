"""Always on: do all passes over the training data end behind the same row, with rows left (T731)?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_torch.drawn import Draw
from traindx_tools.on_torch.nonfinite.places import Place, here
from traindx_tools.on_torch.probe import TorchProbe
from traindx_tools.on_torch.probes.row_order import loader_of
from traindx_tools.on_torch.rules import t731_passes_left_early
from traindx_tools.rows.passes import Passes
from traindx_tools.rows.stored_rows import reference

MOST = 16


@dataclass(eq=False)
class _Seen:
    dataset: Callable[[], Any]
    loader: str
    passes: Passes
    place: Place | None


class PassesProbe(TorchProbe):
    """Counts what loaders give that keep the order of their dataset."""

    name = "passes"
    always_on = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._seen: dict[int, _Seen] = {}

    def next_look(self) -> int:
        """Batches alone, which are always told."""
        return self.NEVER

    def batch_given(self, batch: Any) -> None:
        """Counts."""
        draw = self.scene.drawn
        if draw is None or draw.order != "stored" or self.scene.replicas > 1:
            return
        seen = self._of(draw)
        if seen is not None and len(draw.index):
            follow = bool((np.diff(draw.index) == 1).all())
            seen.passes.take(draw.epoch, int(draw.index[0]) if follow else -1, len(draw.index), self.scene.step)

    def _of(self, draw: Draw) -> _Seen | None:
        known = self._seen.get(id(draw.dataset))
        if known is not None and known.dataset() is draw.dataset:
            return known
        try:
            items = len(draw.dataset)
        except Exception:  # noqa: BLE001 - a dataset of the user may do anything
            return None
        if len(self._seen) >= MOST:
            return None
        made = _Seen(reference(draw.dataset), loader_of(draw), Passes(items), here())
        self._seen[id(draw.dataset)] = made
        return made

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        for seen in self._seen.values():
            found = seen.passes.left_early()
            if found is not None:
                yield from t731_passes_left_early.check(found, seen.loader, seen.place, self.scene.step,
                                                        self.scene.recorder.rank)
