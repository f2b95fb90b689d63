"""The calls of models and what became of them: trained on, evaluated, or neither."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traindx_tools.on_torch.drawn import Draw
from traindx_tools.on_torch.measures.batch import named_tensors
from traindx_tools.on_torch.measures.loss_graph import nodes
from traindx_tools.rows.profile import Profile

TRAINED, EVALUATED, OTHER = "trained", "evaluated", "other"
RUN = 2
"""Calls without gradients in a row, from which they are an evaluation in any mode."""
MOST_OPEN = 96
"""Calls that wait for what becomes of them, or for their numbers."""


@dataclass(eq=False)
class ModelCall:
    """One call. What the device computed of it arrives later: `waiting` counts what has not."""

    model: int
    number: int
    step: int
    rows: int
    grad: bool
    training: bool
    draw: Draw | None
    outputs: tuple[Any, ...] = ()
    """Weak references."""
    made: tuple[int, ...] = ()
    """Numbers of the nodes of the outputs, which outlive them."""
    role: str | None = None
    waiting: int = 0
    row_shape: tuple[int, ...] | None = None
    """Of a call that no DataLoader gave the rows of."""
    whole: bool = True
    """The values are all that there is of a row."""
    ids: bool = False
    """And they are token ids."""
    values: NDArray[np.float64] | None = None
    answers: NDArray[np.float64] | None = None
    kind: str = "other"
    label: NDArray[np.float64] | None = None
    """What the batch holds beside the inputs, one number a row; `counted`: of whole numbers."""
    counted: bool = False
    named: NDArray[np.float64] | None = None
    """The class that an evaluated model names for each row."""
    profiles: dict[str, Profile] = field(default_factory=dict)
    target: NDArray[np.float64] | None = None
    ignored: int | None = None

    @property
    def ready(self) -> bool:
        """Whether it can be put into a book."""
        return self.role is not None and not self.waiting


class Calls:
    """Those that are not in a book yet, in order."""

    def __init__(self) -> None:
        self.open: deque[ModelCall] = deque()
        self._lengths: dict[int, int] = {}

    def begin(self, call: ModelCall) -> None:
        """A call comes."""
        if len(self.open) >= MOST_OPEN:
            self.open.popleft()
        self.open.append(call)
        if not call.grad:
            self._lengths[call.model] = self._lengths.get(call.model, 0) + 1

    def trained_by(self, loss: torch.Tensor) -> list[ModelCall]:
        """A backward pass begins: which calls it trains. All that came before it have a role from now on."""
        asked = [c for c in self.open if c.role is None]
        graph: set[Any] | None = None
        for c in asked:
            if not c.grad:
                continue
            if not c.training or sum(d.grad for d in asked) > 1:
                graph = set(nodes(loss)) if graph is None else graph
                numbers = {n._sequence_nr() for n in graph} if c.made else set()
                if numbers.isdisjoint(c.made) and not any(
                        t.grad_fn in graph for r in c.outputs if (t := r()) is not None and t.grad_fn is not None):
                    continue
            c.role = TRAINED
        self.settle(ended=False)
        return [c for c in asked if c.role == TRAINED]

    def settle(self, *, ended: bool) -> None:
        """The calls before a backward pass, or before the end, are no training: which of them is an evaluation."""
        for c in self.open:
            if c.role is None and (ended or not c.grad or not c.training):
                several = self._lengths.get(c.model, 0) >= RUN
                c.role = EVALUATED if (not c.training if c.grad else not c.training or several) else OTHER
        self._lengths.clear()

    def done(self) -> Iterable[ModelCall]:
        """Those that can be put into a book, in order."""
        while self.open and self.open[0].ready:
            yield self.open.popleft()


def outputs_of(output: Any) -> tuple[torch.Tensor, ...]:
    """Tensors with a graph in an output."""
    return tuple(t for _, t in named_tensors(output) if t.grad_fn is not None)
