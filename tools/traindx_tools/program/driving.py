"""What follows or drives a model from beside: averages of its weights, and loops that an engine drives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Average:
    """An update of a moving average of weights."""

    at: Any
    """Its place (`moments.Spot`)."""
    text: str
    share: float | None
    """What it keeps of its past in one update; None where that is not fixed."""
    updates: float | None = None
    """How often it runs at most."""
    late: bool = False
    """A condition in the training loop decides about it."""
    in_step: bool = False
    """The averaged module is called in the training step itself: a target network, a teacher."""
    evaluated: bool = False
    """It is used outside of the steps that train: evaluated, or put back into a model."""
    in_eval: bool = False
    """It is put into eval mode."""
    pretrained: bool = False
    """It begins with weights of a file."""
    statistics: str = ""
    """A layer of it that keeps running statistics; "" where none is known."""
    buffers: bool = False
    """Something goes over buffers or whole states as well, or may."""

    @property
    def left(self) -> float | None:
        """What is left of the weights that the run began with."""
        return self.share**self.updates if self.share is not None and self.updates is not None else None

    @property
    def span(self) -> float:
        """How many updates it is an average over."""
        return 1 / (1 - (self.share or 0.0))

    @property
    def is_read(self) -> bool:
        """It is evaluated, or put into eval mode to be."""
        return self.evaluated or self.in_eval


@dataclass(frozen=True)
class Left:
    """A step in a loop that an engine drives."""

    kind: str
    """"optimizer" or "scheduler"."""
    text: str
    at: Any
    wrapped: bool
    guarded: bool
    """A condition, or a loop inside the one over batches, decides about it."""
    accumulates: bool
    """It stands in the engine's window."""
    in_updates: bool
    """A length that it was given was divided."""


@dataclass(frozen=True)
class OwnLoss:
    """A method that gives a framework's trainer its loss, and leaves the window of accumulation to nobody.

    `window`: micro-batches of an update; `said`: where that is set."""

    at: Any
    window: int
    said: str


@dataclass(frozen=True)
class FieldDropped:
    """A field of the rows that a framework's trainer leaves out, and that a loss of the project asks for."""

    field: str
    text: str
    at: Any
    made: str
    """Where the trainer is made."""


@dataclass
class EngineLoop:
    """A training loop beside an engine that wraps models, optimizers and loaders."""

    at: Any
    engine: str
    made: str
    """Where the engine is made."""
    precision: str = ""
    scales: bool = False
    """The engine multiplies the loss by a scale."""
    window: float | None = 1.0
    """Micro-batches in one update; None where more than one may be."""
    window_known: bool = True
    accumulates: bool = False
    own: Any = None
    """The place of a backward through the engine."""
    plain: Any = None
    """The place of a backward of a loss itself."""
    steps: list[Left] = field(default_factory=list)
    model: str = ""
    """Where a model was made that is not wrapped though its optimizer is."""
    loader: str = ""
    """Where the loader was made, if it is not wrapped."""
    clip: Any = None
    """The place of a clip that meets gradients which still hold the scale."""
    trains_wrapped: bool = False
    """Something that it steps is wrapped."""


@dataclass(frozen=True)
class WayOut:
    """A condition under which one process leaves a distributed training loop. `kind`: "metric" (of its own share of the
    data), "clock", "loss" (of its own batches), "rank"."""

    test: str
    at: Any
    kind: str
    on: str = ""


@dataclass(frozen=True)
class Collective:
    """A call that returns only when every process has made it."""

    name: str
    at: Any
    condition: Any = None
    """The condition on the rank under which alone it is made."""
    loop: Any = None
    """The loop around it that runs over a process's own share of the data."""
    uneven: bool = False
    """Those shares certainly differ in size."""


@dataclass(frozen=True)
class RankUse:
    """What every process of a distributed run does for itself. `kind`: "file" (all write the one that `on` says),
    "share" (a loop, `on`, measures a rank's own share of the data and nothing is reduced), "batches" (the loop `on`
    trains on the same batches in every process), "gradients" (a step mapped over devices applies its own)."""

    kind: str
    at: Any
    on: Any = ""
    certain: bool = True
    """Several processes run it: it says so itself, and is not only written so that they may."""
