"""Where a non-finite value came from: one record for each operation that made, met or passed one on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from traindx_tools.on_torch.nonfinite.places import Place
from traindx_tools.on_torch.nonfinite.statistics import Stats

COMPUTED = "computed"
"""An operation whose inputs were finite, or held only infinities that a person wrote, gave it."""
CONSTANT = "constant"
"""The program writes an infinity: a mask, a start value. No origin unless it reaches the loss."""
BATCH, PARAMETER, BUFFER, OUTSIDE = "batch", "parameter", "buffer", "outside"
"""It was there when tracing met it: in the batch, in a weight, in a buffer, or anywhere else."""
UNINITIALISED = "uninitialised"
"""Memory from `empty` that was read before it was written."""
THROUGH = "through"
"""An operation that passed it on."""


@dataclass(frozen=True, eq=False)
class Event:
    """One record; `number` orders them in time."""

    number: int
    kind: str
    op: str = ""
    phase: str = "forward"
    node: str = ""
    """Autograd function that ran the operation, such as `SqrtBackward0`."""
    place: Place | None = None
    module: str | None = None
    name: str | None = None
    """What holds it: a parameter's path, a key of the batch."""
    inputs: tuple[Stats, ...] = ()
    output: Stats | None = None
    numbers: tuple[float, ...] = ()
    """Plain numbers among the arguments."""
    details: tuple[str, ...] = ()
    """What the tracer saw beside the values: "masked-row", "hidden-forward", "eager"."""
    roots: tuple[Event, ...] = field(default=(), repr=False)
    """For what was passed on: where it came from, the earliest first."""

    @property
    def origins(self) -> tuple[Event, ...]:
        """Itself, or the records from which it was passed on."""
        return self.roots if self.kind == THROUGH else (self,)


MOST_ROOTS = 16


def joined(events: Iterable[Event]) -> tuple[Event, ...]:
    """The origins of several records, each once, the earliest first, bounded."""
    unique = {id(o): o for e in events for o in e.origins}
    return tuple(sorted(unique.values(), key=lambda e: e.number)[:MOST_ROOTS])


def culprit(events: Iterable[Event]) -> Event | None:
    """The origin to blame: the earliest that is no constant; a constant only where nothing else is there."""
    origins = joined(events)
    blamed = [e for e in origins if e.kind != CONSTANT] or list(origins)
    return blamed[0] if blamed else None
