"""A part of what was read from a checkpoint is not what the functions are given afterwards.

The parameters of the file are there, another entry of it is not: under its names the function is given other arrays,
mostly those of a fresh start. States of JAX are immutable, and the result of a `replace` or an `update` that is not
kept changes nothing. Of running statistics the training shows nothing of it, and every evaluation does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

FEWEST, SHARE = 3, 0.3
"""Arrays of a tree that a function must be given, and the share of it."""

RULE = Rule(
    id="J711",
    name="jax-restored-in-part",
    title="A part of what was read from a checkpoint is not restored",
    severity=Severity.HIGH,
    sees="trees of arrays that flax, orbax and pickle read, and the arguments of the first function that is given a "
         "good part of them",
    matters="the run goes on with fresh values in this one respect: statistics, averages, moments",
    alike=("moments and averages of the weights that are left on purpose: low", "an entry of which a part arrived",
           "a checkpoint of another model: nothing of it arrives"),
    confirm=("jax.tree.map(jnp.allclose, state.batch_stats, restored['batch_stats'])  # right after restoring",),
    thresholds={
        "share": Threshold(SHARE, "of the arrays of the tree are given to the function", "it is this state"),
        "fewest": Threshold(FEWEST, "such arrays", "no chance"),
    },
)


@dataclass(frozen=True)
class Lost:
    """Arrays below one entry of a tree that a function is not given. `shown`: one of them, `given`: what is there
    instead."""

    entry: str
    function: str
    count: int
    of: int
    found: int
    shown: str
    read: tuple[float, ...]
    given: tuple[float, ...]
    place: tuple[str, int] | None
    per_parameter: bool
    """Each belongs to a parameter: moments, an average of the weights. Leaving these is often meant."""


def check(seen: Iterable[Lost]) -> Iterator[Finding]:
    """One finding for each entry."""
    told: set[str] = set()
    for one in seen:
        if one.entry in told:
            continue
        told.add(one.entry)
        file, line = one.place or (None, None)
        yield RULE.finding(
            f"{one.entry} of the checkpoint is not restored: of {one.of} arrays that were read {one.found} are among "
            f"the arguments of {one.function}, and under the names of {one.count} below {one.entry} it is given others "
            f"({one.shown}: {_said(one.given)}, in the file {_said(one.read)}): they are fresh or were discarded on "
            "the way", Location(file=file, line=line, module=one.function), "arguments of compiled functions",
            severity=Severity.LOW if one.per_parameter else None,
            bearing=Bearing.SIGN if one.per_parameter else Bearing.CAUSE,
            measured={"target": one.entry, "arrays": one.count, "found": one.found, "function": one.function,
                      "kind": "per-parameter" if one.per_parameter else "state"})


def _said(values: tuple[float, ...]) -> str:
    return " ".join(f"{v:.4g}" for v in values)
