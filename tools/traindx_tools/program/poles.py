"""Operations at points where they, or their derivatives, have no value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from traindx_tools.program.moments import Spot


@dataclass(frozen=True)
class Pole:
    """An operation whose argument reaches 0. `kind`: "log", "sqrt", "division" (by a
    spread), "count" (a division by one) or "where" (a branch not selected)."""

    kind: str
    text: str
    at: Spot
    low: float = 0.0
    high: float | None = None
    of: str = ""
    """What gives the argument: "softmax", "sigmoid", or "" for any other expression."""
    made: str = ""
    attached: bool | None = True
    """Whether a gradient goes through it; None where that is not known."""
    spread: bool = False
    """Whether it is a variance or standard deviation; of a "count": whether the quotient stays in a running state."""
    dtype: str = "float32"
    guard: str = ""
    """What was written to keep it away from there, and does not."""
    why: str = ""
    """Why the guard does not."""
    origin: Any = None


@dataclass(frozen=True)
class Rounded:
    """A small number that its dtype does not hold. `kind`: "clamp", "addition" or "adam eps"."""

    kind: str
    text: str
    at: Spot
    value: float
    dtype: str


@dataclass(frozen=True)
class HalfUpdate:
    """An optimizer that updates parameters in a half type, without copies in float32."""

    optimizer: str
    at: Spot
    cast: Spot
    dtype: str
    rate: float | None
    eps: float | None
