"""Makes the noted calls and operations of a step once more, on copies of what they were given."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.nonfinite.places import on_behalf_of
from traindx_tools.on_torch.snapshot.copying import Copier
from traindx_tools.on_torch.snapshot.state import without_autocast
from traindx_tools.on_torch.snapshot.tape import Call, Given, Made, Op, mapped, tensors_of


class Rerun:
    """One run of noted entries. The program's own modules and tensors are read and never written."""

    def __init__(self) -> None:
        self.copier = Copier()
        self.values: list[Any] = []
        """What was made again, by number."""

    def again(self, entry: Op | Call) -> None:
        """Makes an entry once more and keeps what it gives."""
        if isinstance(entry, Op) and entry.drawn is not None:
            results: list[Any] = self.drawn(entry)
        else:
            args, kwargs = (mapped(v, self.filled, (Made, Given)) for v in (entry.args, entry.kwargs))
            run = self.operation if isinstance(entry, Op) else self.call
            with torch.set_grad_enabled(entry.gradients):
                results = list(tensors_of(on_behalf_of(entry.place, lambda: run(entry, args, kwargs))))
        if len(results) != len(entry.results):
            raise NotReplayable("it took another course")
        for slot, result in zip(entry.results, results, strict=True):
            self.values[slot] = result

    def drawn(self, entry: Op) -> list[Any]:
        """What a random operation gave: it is taken as it was."""
        return list(entry.drawn or ())

    def operation(self, entry: Any, args: Any, kwargs: Any) -> Any:
        """One operation; casts of autocast were noted as operations of their own."""
        with without_autocast():
            return entry.func(*args, **kwargs)

    def call(self, entry: Any, args: Any, kwargs: Any) -> Any:
        """The call of a module, with its buffers, numbers and surroundings as they were."""
        module = self.copier.module(entry.module)
        buffers = dict(module.named_buffers())
        for name, values in entry.buffers.items():
            if name in buffers:
                buffers[name].data.copy_(values)  # unseen by the version counter: an earlier call's graph may hold it
        for part, numbers in entry.numbers:
            vars(self.copier.module(part)).update(numbers)
        with entry.surroundings.again(), contextlib.redirect_stdout(io.StringIO()):
            return module(*args, **kwargs)

    def filled(self, stand_in: Made | Given) -> Any:
        """What stands for a tensor of the step in this run."""
        if isinstance(stand_in, Made):
            value = self.values[stand_in.slot]
            if value is None:
                raise NotReplayable("it reads what was not made again")
            return value
        if not stand_in.unchanged:
            raise NotReplayable("what the step was given was changed in place since")
        tensor = stand_in.tensor
        return self.copier.tensor(tensor) if tensor.is_leaf and tensor.requires_grad else tensor

    def leaves(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Originals and copies of what takes a gradient."""
        return [(o, c) for o, c in self.copier.pairs(torch.Tensor) if c.is_leaf and c.requires_grad]


def givens(entries: Iterable[Op | Call]) -> Iterator[Given]:
    """The stand-ins of what the entries were given, in order; one may come twice."""
    for entry in entries:
        found: list[Given] = []
        mapped((entry.args, entry.kwargs), found.append, Given)
        yield from found
