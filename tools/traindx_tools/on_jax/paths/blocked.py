"""Inputs of a loss that get no gradient, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from traindx_tools.on_jax.paths.ends import Cut

CUT, DISCONNECTED, BRANCH = "cut", "disconnected", "one branch"


@dataclass(frozen=True)
class Blocked:
    """Inputs that get no gradient for one reason: by their names. `cuts`: every end on their ways, the one to change
    first."""

    kind: str
    names: tuple[str, ...]
    cuts: tuple[Cut, ...]
    function: str
    unchanged_calls: int | None = None
    """For how many calls of a running program they were seen not to change, or to change without a gradient."""
    decaying: tuple[str, ...] = ()
    """Those of them that an update made of nothing but themselves moves: weight decay."""
    norms: Mapping[str, float] | None = None
    """The measured norm of the gradient of each parameter, of others too, where gradients were seen."""
