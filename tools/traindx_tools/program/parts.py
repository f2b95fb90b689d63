"""Layers inside models, tables of codes, as a loop calls them, and states that are taken, saved and restored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from traindx_tools.program.entities import Model
from traindx_tools.program.moments import Spot


@dataclass(frozen=True)
class PartCall:
    """A layer inside a model that is called with gradients on the way to a loss."""

    whole: Model
    part: Model
    path: str
    at: Any
    stored: Any = None
    """The act that put it into the model, outside of a constructor."""
    replaced: bool = False
    """Whether another layer was there before."""


@dataclass(frozen=True)
class CodeLookup:
    """A choice of the best of products of rows of length 1 with the rows of a table."""

    table: str
    text: str
    at: Any
    chosen: Any
    looked_up: bool = True
    """Whether rows of the table are taken as codes."""
    normalised: bool = False
    """Whether anything brings the table's rows to length 1."""


@dataclass(frozen=True)
class TimedCall:
    """A call of a network that is told where a process stands: in which scale, and whether that was drawn at random."""

    text: str
    at: Spot
    network: str
    place: str
    """Which argument it is."""
    scale: str
    drawn: bool


@dataclass(frozen=True)
class Alphabet:
    """Texts that are numbered one after the other, as far as they are known; `start` is the first one's number."""

    at: Spot
    text: str
    entries: tuple[str, ...]
    start: int


@dataclass(frozen=True)
class BlankUse:
    """A CTC loss: the class that stands for no character, and how many classes its scores have."""

    at: Spot
    blank: int
    width: int | None


@dataclass(frozen=True)
class PartFit:
    """Something that is fitted (`kind`: its class), or a numbering of names (""), on a part of the data."""

    kind: str
    text: str
    at: Spot
    part: str
    """"train" or "held"."""
    group: str
    """The same for all that stand in one place, or side by side."""
    made: int
    """The identity of what is fitted."""


@dataclass(frozen=True)
class RunningState:
    """Plain tensor attributes of a module that the module updates from itself and uses for what it gives."""

    owner: str
    attributes: str
    """Their names, with commas."""
    made: Any
    changed: Any
    saved: bool
    """The program saves modules by their state."""
    many: bool = False


@dataclass(frozen=True)
class StateBack:
    """A state that was taken of a module by reference in a loop that steps, and is loaded into it behind the loop."""

    taken: Any
    text: str
    loaded: Any


@dataclass(frozen=True)
class Lack:
    """What a run does not get back when it goes on. `kind`: "saved" (it is in no file), "restored" (nobody loads it),
    "counter", "order" (it comes too early)."""

    kind: str
    what: str
    at: Spot
    beside: Spot | None = None


@dataclass(frozen=True)
class StateSkipped:
    """A load of a file in which keys that do not fit are skipped, and nobody looks at which."""

    at: Any
    text: str
    wrapper: Any = None
    """Where the module is wrapped that is saved as it is, if the one that is loaded into is not, or may not be."""
    saves: bool = False
    """The program writes such files itself."""


@dataclass(frozen=True)
class CutPart:
    """A module that an optimizer was given by itself, and that is only called where autograd records nothing; or
    (`drawn`) a draw without a gradient between two modules that an optimizer holds, `made`: where it is used."""

    optimizer: str
    """Where the optimizer is made."""
    made: str
    at: Spot
    drawn: bool = False


@dataclass(frozen=True)
class Sized:
    """Layers made at one place: what they are called in the model, what they are made with, and how many parameters
    they hold together."""

    path: str
    kind: str
    at: Spot
    sizes: tuple[int, ...]
    parameters: int


@dataclass(frozen=True)
class SizedModel:
    """A model of which every layer's size is known."""

    name: str
    parts: tuple[Sized, ...]


@dataclass(frozen=True)
class Alias:
    """A further name that a module gets."""

    name: str
    of: str
    at: Spot
    model: Model
    is_reference: bool
    """By its new name, and not by the old one, it is read and not trained."""
    is_used: bool = False
    """It is called, put into eval mode or loaded by that name."""


@dataclass(frozen=True)
class RestoredLost:
    """A value or state that came out of a file and is gone before it is read: `kind` says what it is: "optimizer",
    "schedule", "scaler", "generator", "position" (where a loop begins), "value", "object"."""

    kind: str
    entry: str
    """What is taken out, as it is written: `ckpt["epoch"]`."""
    target: str
    """Where it goes: a name, an attribute, an object."""
    at: Spot
    lost: Spot
    """What writes over it, or makes the object anew."""
    replaced: bool = False
    """The object into which it was loaded is another one by then."""
