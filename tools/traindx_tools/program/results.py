"""What pure functions return, and nothing reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from traindx_tools.program.known import Known
from traindx_tools.program.moments import Spot


@dataclass(frozen=True)
class UnusedResult:
    """A result, or a part of one, that nothing reads. `kind`: "parameters", "state", "array", "pure", "gradients" or
    "statistics"; "bound": one that a `partial` of before hides; "argument": gradients applied to something else;
    "masked": what a mask leaves out goes on as it came. Or a "method" that is named as a statement and not called; its
    `name`: the moment that it would be. Or an "inference" copy that takes the name under which training goes on."""

    kind: str
    call: str
    """What is called, as it is written."""
    at: Spot
    name: str = ""
    known: Known = Known.DERIVED
    origin: Any = None


@dataclass(frozen=True)
class OwnRatio:
    """An exponential of a log-probability less the same one: where the second comes from, and the loop that repeats
    it."""

    text: str
    at: Spot
    old: str
    loop: int
    times: float | None = None


@dataclass(frozen=True)
class KeptArray:
    """An array that a loop keeps, and into which the method that handed it out writes at the next call."""

    text: str
    at: Spot
    handed: Spot
    written: str


@dataclass(frozen=True)
class UnreadSetting:
    """An entry of a configuration file that no code reads, although the code has the same setting by another name."""

    file: str
    key: str
    value: str
    known_as: str
    at: Any
