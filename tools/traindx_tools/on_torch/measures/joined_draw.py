"""Which draw of a DataLoader a call of a model belongs to.

A batch that was given out goes into the model as it is, or as a copy on a device, or changed; loaders that look ahead
give out the next one before. A call belongs to the batch whose memory it shares or whose values it has; only where
batches and calls have always alternated is the last one taken without such a sign.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.on_torch.drawn import Draw
from traindx_tools.on_torch.measures.batch import named_tensors

MOST_GIVEN = 4
PROBED = 16
"""Values of a tensor that are compared."""


@dataclass(frozen=True, eq=False)
class GivenBatch:
    """A batch of a DataLoader. `draw`: None where its sampler does not say which rows these are."""

    draw: Draw | None
    rows: int
    tensors: tuple[Any, ...]
    """Weak references."""
    values: tuple[tuple[float, ...], ...]

    def label(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
        """The one tensor of one number a row that did not go into the model; None where there is none, or several."""
        alive = [t for r in self.tensors if (t := r()) is not None]
        left = [t for t, v in zip(alive, self.values, strict=False) if t.numel() == self.rows and not t.is_complex()
                and not any(t is x or v == _values(x) for x in inputs.values())]
        return left[0] if len(left) == 1 and len(alive) == len(self.values) else None


class Given:
    """The last batches of DataLoaders whose calls have not come yet."""

    def __init__(self) -> None:
        self._given: deque[GivenBatch] = deque(maxlen=MOST_GIVEN)
        self._ahead = False

    def give(self, draw: Draw | None, batch: Any) -> None:
        """A batch was given out."""
        every = [t for _, t in named_tensors(batch) if t.ndim]
        rows = len(draw.index) if draw is not None else len(every[0]) if every else 0
        tensors = [t for t in every if len(t) == rows]
        if tensors and rows:
            known = tuple(weakref.ref(t) for t in tensors)
            self._given.append(GivenBatch(draw, rows, known, tuple(map(_values, tensors))))
            self._ahead |= len(self._given) > 1

    def take(self, inputs: Mapping[str, torch.Tensor]) -> GivenBatch | None:
        """The batch that these inputs of a call come from; None where that is not sure. It is given once."""
        rows = {len(t) for t in inputs.values()}
        able = [g for g in self._given if g.rows in rows]
        same = [g for g in able if _same(g, inputs)] or [g for g in able if _shares(g, inputs)]
        found = same[0] if len(same) == 1 else None
        if found is None and able and not self._ahead:
            found = able[-1]
        if found is not None:
            while self._given and self._given.popleft() is not found:
                pass
        return found


def _same(given: GivenBatch, inputs: Mapping[str, torch.Tensor]) -> bool:
    alive = [t for r in given.tensors if (t := r()) is not None]
    return any(any(t is a for a in alive) or _values(t) in given.values for t in inputs.values())


def _shares(given: GivenBatch, inputs: Mapping[str, torch.Tensor]) -> bool:
    memory = {t.untyped_storage().data_ptr() for r in given.tensors if (t := r()) is not None}
    return any(t.untyped_storage().data_ptr() in memory for t in inputs.values())


def _values(t: torch.Tensor) -> tuple[float, ...]:
    """Some values, where they can be read without waiting and say enough."""
    if t.device.type != "cpu" or t.dtype in (torch.bool,) or t.is_complex() or t.numel() < PROBED:
        return (float("nan"),)
    flat = t.detach().reshape(-1)
    values: Sequence[float] = flat[::max(1, len(flat) // PROBED)][:PROBED].to(torch.float64).tolist()
    return tuple(values) if len(set(values)) > PROBED // 4 else (float("nan"),)
