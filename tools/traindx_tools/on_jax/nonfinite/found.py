"""What an evaluation for NaN and infinity found: the origins, and the outputs that they reached."""

from __future__ import annotations

from dataclasses import dataclass, field

from traindx_tools.on_jax.nonfinite.marks import Candidate
from traindx_tools.on_jax.nonfinite.reasons import Reason
from traindx_tools.on_jax.nonfinite.wrapping import Wrapped


@dataclass(frozen=True)
class Origin:
    """What is known of an origin."""

    candidate: Candidate
    reason: Reason
    outputs: tuple[str, ...]
    """The outputs of the function that it reached, by their paths."""
    function: str
    others: int = 0
    """Further origins that reached an output."""
    wrapped: Wrapped | None = None
    """The integer overflow behind it."""
    call: int | None = None
    """Which call of the process it was, where a live instrument saw it."""
    step: int | None = None
    """Which call of the function it was."""
    rank: int | None = None
    hidden: bool = False


@dataclass(frozen=True)
class Search:
    """The outcome of one evaluation: the origins that reached an output, the first one first."""

    origins: tuple[Origin, ...] = ()
    overflows: tuple[Wrapped, ...] = ()
    """Integer overflows, whether or not something became non-finite by them."""
    bad: tuple[str, ...] = field(default=())
    """The paths of outputs that are not finite."""
