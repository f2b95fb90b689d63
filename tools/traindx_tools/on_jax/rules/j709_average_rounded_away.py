"""An average that a compiled function carries on does not move: half precision cannot hold its increments.

A number of bfloat16 has 8 significant bits, one of float16 11. An average with decay 0.999 adds a thousandth of the
difference, and even a difference as large as the weight rounds away. Told where an array of half precision began as a
copy of another one of its shape, that one moved on by a fifth of its size and more, and nearly all such elements of the
average are bit by bit what they were, while a few small ones moved. The twin of T349.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SHARE, ELEMENTS, CALLS = 0.7, 16, 20

RULE = Rule(
    id="J709",
    name="jax-average-rounded-away",
    title="An average in half precision does not move: its increments are rounded away",
    severity=Severity.HIGH,
    sees="elements of half-precision arguments of compiled functions, early and late, and of the array that they "
         "began as a copy of",
    matters="what is evaluated with the average is what the training began with",
    alike=("a target that is copied now and then: all of it moves, or nothing",
           "frozen weights in half precision: none of their elements move",
           "an average in float32: it moves"),
    confirm=("print(jax.tree_util.tree_map(lambda a: a.dtype, average))",
             "keep the average in float32: it moves"),
    thresholds={"share": Threshold(SHARE, "of the elements that had to change did not",
                                   "a decay of 0.99 in bfloat16 leaves a third of them"),
                "elements": Threshold(ELEMENTS, "such elements", "no slip of one"),
                "calls": Threshold(CALLS, "calls between two looks", "an average needs some")},
)


@dataclass(frozen=True)
class Stuck:
    """One function: its arrays that are averages of half precision, over all of them."""

    function: str
    names: tuple[str, ...]
    dtype: str
    must: int
    still: int
    moved: int
    calls: int
    place: tuple[str, int] | None = None


def check(seen: Sequence[Stuck]) -> Iterator[Finding]:
    """At most one finding: an average that several functions are given is one."""
    told = [s for s in seen if s.must >= ELEMENTS and s.still >= SHARE * s.must and s.moved and s.calls >= CALLS]
    for s in sorted(told, key=lambda s: -s.still)[:1]:
        file, line = s.place or (None, None)
        names = ", ".join(s.names[:3]) + (f" and {len(s.names) - 3} more" if len(s.names) > 3 else "")
        yield RULE.finding(
            f"{s.function}: {names} ({s.dtype}) began as a copy and does not follow: {s.still:,} of {s.must:,} "
            f"elements that are a fifth to twice their size away from what is averaged did not change in {s.calls} "
            f"calls, and {s.moved:,} small ones did: what is added is smaller than half a unit in the last place",
            Location(file=file, line=line, module=s.names[0]), "the running process", bearing=Bearing.CAUSE,
            measured={"kind": "average", "dtype": s.dtype, "must": s.must, "still": s.still, "moved": s.moved,
                      "calls": s.calls, "function": s.function})
