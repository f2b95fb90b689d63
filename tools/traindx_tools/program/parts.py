"""Layers inside models, and tables of codes, as a loop calls them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from traindx_tools.program.entities import Model


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
class RunningState:
    """A plain tensor attribute of a module that the module updates from itself and uses for what it gives."""

    owner: str
    name: str
    made: Any
    changed: Any
    saved: bool
    """The program saves modules by their state."""


@dataclass(frozen=True)
class StateBack:
    """A state that was taken of a module by reference in a loop that steps, and is loaded into it behind the loop."""

    taken: Any
    text: str
    loaded: Any


@dataclass(frozen=True)
class StateSkipped:
    """A load of a file in which keys that do not fit are skipped, and nobody looks at which."""

    at: Any
    text: str
    wrapper: Any = None
    """Where the module is wrapped that is saved as it is, if the one that is loaded into is not, or may not be."""
    saves: bool = False
    """The program writes such files itself."""
