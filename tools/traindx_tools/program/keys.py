"""Random keys: draws that get the same numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from traindx_tools.program.moments import Spot


@dataclass(frozen=True)
class SharedKey:
    """A draw whose key was used before, or is the same. `kind`: "reuse", "loop", "scan", "call", "state", "map"
    or "list"."""

    kind: str
    text: str
    at: Spot
    why: str
    """Where the key was used before, or why it is the same each time."""
    trains: bool = True
    """Whether what is repeated trains."""
    certain: bool = True
    by_path: bool = False
    """Whether a library folds the path of a module into the key before it draws."""
    origin: Any = None
