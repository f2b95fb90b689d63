"""The keys of a mapped axis are copies of one key: all members of an ensemble, or all samples, are the same.

`jnp.stack([key] * n)` or `jnp.tile(key, ...)` gives `vmap` the same key n times; `jax.random.split(key, n)` gives n
different ones. The keys that an eager `vmap` or a jitted function gets are compared by their bytes along the axis. An
eager `vmap` counts where what it returned is the same for all members too, so that a fold of an index into the key,
which makes them differ again, is left alone; a jitted function where its keys are drawn from or split as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule

RULE = Rule(
    id="J205",
    name="jax-keys-equal-along-axis",
    title="All keys of a mapped axis are one key",
    severity=Severity.HIGH,
    sees="the bytes of the keys that an eager vmap or a jitted function gets, along their axis",
    matters="an ensemble of n members is one member n times; n samples or n masks are one",
    alike=("candidates that are compared under common random numbers: pass one key with in_axes=None there",),
    confirm=("print jax.random.key_data(keys): the rows are equal",),
)


@dataclass(frozen=True)
class EqualKeys:
    """Keys that are equal. `argument`: their name; `count`: how many."""

    function: str
    argument: str
    count: int
    place: tuple[str, int] | None
    mapped: bool
    """Whether an eager `vmap` got them, and gave equal outputs."""


def check(equal: EqualKeys) -> Iterator[Finding]:
    """The finding for them."""
    file, line = equal.place or (None, None)
    where = Location(file=file, line=line) if file is not None else Location(module=equal.function)
    at = f" at {file}:{line}" if file is not None else ""
    what = f"vmap of {equal.function}" if equal.mapped else equal.function
    seen = ", and what it returned is the same for all of them" if equal.mapped else ""
    yield RULE.finding(
        f"{what}{at} got {equal.count} copies of one key in {equal.argument}{seen}: jax.random.split(key, "
        f"{equal.count}) gives different ones", where, "the running process", bearing=Bearing.CAUSE,
        measured={"kind": "several elements", "argument": equal.argument, "count": equal.count,
                  "function": equal.function, "mapped": equal.mapped})
