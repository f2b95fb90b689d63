"""A training step gets, or makes, the same random key in every call.

The key that a jitted function uses up is read (one call late, in its first calls) and compared by its bytes with those
of the calls before; a draw from a key that depends on no argument (`PRNGKey(0)` inside the step, a captured key) gives
the same numbers by construction. It counts where the function carries state from call to call. A function without
state, such as a sampler that is called with one key to compare pictures, is only remarked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_jax.places import Place
from traindx_tools.rules import Rule

RULE = Rule(
    id="J203",
    name="jax-key-same-every-call",
    title="Every call of a step uses the same random key",
    severity=Severity.HIGH,
    sees="the bytes of the keys that jitted functions get, and draws that depend on no argument",
    matters="every step drops the same units and adds the same noise: the model learns around one fixed draw",
    alike=("a fixed key for evaluation, which makes pictures comparable",),
    confirm=("print the key in two steps: jax.random.key_data(key)",
           "traindx run -- CMD after the change: no J203"),
)


@dataclass(frozen=True)
class SameKey:
    """A key that does not change. `name`: the argument, or "" where the function makes it itself."""

    function: str
    name: str
    calls: int
    training: bool
    place: Place | None
    """Where it is drawn from."""
    drawn: str = ""


def check(same: SameKey) -> Iterator[Finding]:
    """The finding for it."""
    place = same.place
    where = Location(file=place.file, line=place.line, quote=place.quote) if place else Location(module=same.function)
    what = f"its argument {same.name}" if same.name else "a key that depends on no argument"
    at = f" at {place}" if place else ""
    yield RULE.finding(
        f"{same.function} drew from {what}{at} in {same.calls} calls, and it was the same key each time: every call "
        "gives the same numbers", where, "the running process", bearing=Bearing.CAUSE,
        severity=None if same.training else Severity.INFO,
        measured={"kind": "constant key in a loop", "argument": same.name, "calls": same.calls,
                  "function": same.function, "training": same.training, "code": place.quote if place else ""})
