"""What gives a training program its samples: loaders, and what happens when a sample is fetched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Draw:
    """A random draw while a sample is fetched, or made."""

    text: str
    at: Any
    """Its place (`moments.Spot`)."""
    own: str = ""
    """The attribute of the data set that draws, where it has a generator of its own."""
    by_library: bool = False
    """It is a random transform of a library."""


@dataclass(frozen=True)
class Fetch:
    """What happens when one sample of a data set is fetched."""

    draws: tuple[Draw, ...] = ()
    slow: tuple[str, str, bool, Any] | None = None
    """A call for which it waits: its name, what it does, whether the processor is idle, its place."""


@dataclass
class Loader:
    """What gives the batches of a data set."""

    at: Any
    """Its place (`moments.Spot`)."""
    data: int
    """The identity of the data set, of the whole one where the loader is given a part."""
    cut: int = 0
    """Of a part: the same for all parts of one cut; 0 where the loader is given the whole."""
    made: str = ""
    """Where the data set is made."""
    fetch: Fetch = Fetch()
    kept: tuple[Draw, str] | None = None
    """A draw of a function that the data set is given and whose result it keeps when it is made, and the class."""
    shuffles: bool | None = None
    sampler: str = ""
    sampler_at: Any = None
    told_the_epoch: bool = False
    labels_unread: bool = False
    """The loop that trains throws the second half of each batch away."""
    drop_last: bool | None = None
    single: bool = False
    """One sample a batch."""
    workers: bool | None = None
    """Whether it has worker processes; None where that is not known."""
    persistent: bool = False
    seeded: bool = False
    """The program tells its workers apart."""
    trains: Any = None
    """The place of a loop over it that sends losses backward; `epochs`: inside another loop."""
    epochs: bool = False
    evaluates: Any = None
    """The place of a loop over it that sends none."""
    is_stream: bool = False
    known: bool = True
    """Its data set is an object that the program makes."""
    ordered: str = ""
    """Why its rows lie class by class, as a clause."""
    ordered_at: str = ""
    through: int | None = None
    """The rows of a buffer that they pass."""
    changed: tuple[str, str, Any] | None = None
    """An attribute that fetching reads and a later loop changes: its name, the text and the place of the change."""
    objects: tuple[str, str, float | None, Any] | None = None
    """A list of Python objects that the data set keeps: the attribute, the class, how many (None where that is not
    known), its place."""
    swapped: bool = False
    """A part of the data set gets other data, or another transform, later."""


@dataclass(frozen=True)
class Apart:
    """Two calls of one random transform for the two values of a sample, or one of the two that is moved alone."""

    first: str
    second: str
    at: Any
    """The place of the second (`moments.Spot`)."""
    what: str
    """What draws, or how it is moved."""
    alone: bool = False
    """`second` moves one of the two, and `first` stays where it was."""


@dataclass(frozen=True)
class PreparedBefore:
    """What is done to all rows before they are split. `kind`: they are scaled by "statistics", something else is
    "fitted" on them, columns are chosen by their "labels", some are "copied"."""

    kind: str
    text: str
    at: Any
    cut: Any
    """Where they are split (`moments.Spot`)."""
