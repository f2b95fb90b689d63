"""What is kept of a step so that it can be run again: its passes, and the update that came before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from traindx_tools.experiments.replaying.symptom import Symptom
from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.captured.call import rows_of
from traindx_tools.on_torch.snapshot.replay import KeptStep
from traindx_tools.on_torch.snapshot.rerun import givens
from traindx_tools.on_torch.snapshot.tape import Call, Given, Made, Noted, Op, mapped

MOST_BYTES = 2**28
"""Of what has the rows of a batch, since it is copied for each question: all of the data may lie in one tensor."""


@dataclass(frozen=True)
class Root:
    """A tensor that `backward` was called on: its number, and what a loss scaler had multiplied it with."""

    slot: int
    factor: float = 1.0


@dataclass(frozen=True, eq=False)
class Passes:
    """Forward and backward passes up to a loss. The last root is the loss that is looked at."""

    noted: Noted
    roots: tuple[Root, ...]
    value: float
    """The last loss, without a scaler's factor."""
    dtype: torch.dtype
    leftover: Mapping[int, torch.Tensor] = field(default_factory=dict)
    """Gradients that were there before the first of these backward passes, by `id(parameter)`."""
    accumulates: bool = False
    """They are of earlier backward passes of the same step, at least in part."""
    drawn: tuple[int, ...] = ()
    """The rows of the dataset that the batch holds, where the sampler says them."""
    constant: frozenset[int] = frozenset()
    """Ids of tensors that the step before was given as well: weights of classes, masks, or all of the data."""

    @property
    def needed(self) -> list[Op | Call]:
        """The entries that the losses were made from."""
        return self.noted.leading_to(r.slot for r in self.roots)

    def models(self) -> list[torch.nn.Module]:
        """The modules that were called, each once."""
        return list({id(e.module): e.module for e in self.needed if isinstance(e, Call)}.values())

    def batch(self) -> tuple[int, frozenset[int]]:
        """The rows of the batch, and the ids of the tensors that have them. Raises NotReplayable where it has none."""
        entries = self.needed
        read = {id(t): t for t in data_of(entries)}
        inputs = list(_inputs(self.noted, entries))
        if not all(id(t) in self.constant for t in inputs):
            read = {i: t for i, t in read.items() if i not in self.constant}
            inputs = [t for t in inputs if id(t) not in self.constant]
        count = rows_of(inputs)
        if count < 2:
            raise NotReplayable("the batch has no rows that could be told apart")
        sizes = [t.shape[0] for t in read.values() if t.ndim]
        if any(n > count and n % count == 0 for n in sizes):
            raise NotReplayable("some of its tensors hold several entries a row")
        whole = {i: t for i, t in read.items() if t.ndim and t.shape[0] == count}
        if sum(t.numel() * t.element_size() for t in whole.values()) > MOST_BYTES:
            raise NotReplayable("the rows are too large to change places")
        return count, frozenset(whole)


@dataclass(frozen=True, eq=False)
class Update:
    """A step of an optimizer: parameters and state before it, the gradients that it took, and where these came from."""

    kept: KeptStep
    gradients: Sequence[torch.Tensor | None]
    passes: Passes | None
    clipped: bool = False

    @property
    def values(self) -> dict[int, torch.Tensor]:
        """The parameters before it, by `id(parameter)`."""
        return {id(p): v for p, v in zip(self.kept.parameters, self.kept.values, strict=True)}


@dataclass(frozen=True, eq=False)
class Scenario:
    """A symptom and what there is to run it again: an update, then the passes that show it."""

    symptom: Symptom
    passes: Passes
    update: Update | None = None
    no_update: str = ""
    """Why there is none."""
    clipped: bool = False
    """The gradients of these passes were clipped before their norm was measured."""


def _inputs(noted: Noted, entries: Sequence[Op | Call]) -> Iterator[torch.Tensor]:
    """Tensors of the program that the first call was given, directly or through operations of the loop."""
    first = next((e for e in entries if isinstance(e, Call)), None)
    if first is None:
        return
    direct: list[Given] = []
    made: list[Made] = []
    mapped((first.args, first.kwargs), direct.append, Given)
    mapped((first.args, first.kwargs), made.append, Made)
    through = [e for e in noted.leading_to(m.slot for m in made) if isinstance(e, Op)] if made else []
    for tensor in [*(g.tensor for g in direct), *data_of(through)]:
        if not tensor.requires_grad and tensor.ndim:
            yield tensor


def data_of(entries: Sequence[Op | Call]) -> Iterator[torch.Tensor]:
    """What the entries read that the step did not compute: tensors of the program, and what was drawn from nothing."""
    for given in givens(entries):
        if not given.tensor.requires_grad:
            yield given.tensor
    for entry in entries:
        if isinstance(entry, Op) and entry.drawn is not None and not _reads(entry):
            yield from entry.drawn


def _reads(entry: Op) -> bool:
    found: list[Made | Given] = []
    mapped((entry.args, entry.kwargs), found.append, (Made, Given))
    return bool(found)
