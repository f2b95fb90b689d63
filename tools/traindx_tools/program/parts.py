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
