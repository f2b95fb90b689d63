"""Always on: do the fields of a batch stand in one order (T733)? Asked of the first batches that are collated."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.measures.batch import named_tensors
from traindx_tools.on_torch.measures.collated_order import Apart, orders_apart
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t733_collated_apart

MOST_BATCHES = 6
"""Of each collate function."""


class CollatedOrderProbe(TorchProbe):
    """Compares samples with batches."""

    name = "collated-order"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._seen: dict[int, list[Apart | None]] = {}
        self._functions: dict[int, Callable[..., Any]] = {}

    def next_look(self) -> int:
        """No step is looked at."""
        return self.NEVER

    def rows_collated(self, collate: Callable[..., Any], rows: Sequence[Any], batch: Any) -> None:
        """Looks at the first batches."""
        seen = self._seen.setdefault(id(collate), [])
        self._functions.setdefault(id(collate), collate)
        if len(seen) < MOST_BATCHES:
            seen.append(orders_apart(rows, [*_tensors(batch)]))

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        for number, seen in self._seen.items():
            if seen and all(a is not None for a in seen):
                yield from t733_collated_apart.check(seen[0], len(seen), *_place(self._functions[number]),
                                                     self.scene.recorder.rank)


def _tensors(batch: Any) -> Iterator[torch.Tensor]:
    if hasattr(batch, "to_dict") or hasattr(batch, "items"):
        yield from (t for _, t in named_tensors(dict(batch)))
    else:
        yield from (t for _, t in named_tensors(batch))


def _place(function: Any) -> tuple[str | None, int | None]:
    """File and line of what collates."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else (None, None)
