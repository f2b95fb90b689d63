"""A gradient became NaN or infinite through a collective: another rank made the value and this one received it.

With data parallelism one rank's NaN reaches all of them in the all-reduce of the gradients. Every rank traces its own
operations; the one that made the value names the operation (T101), the others say that it came from outside.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule

RULE = Rule(
    id="T103",
    name="nonfinite-from-another-rank",
    title="A non-finite gradient arrived from another rank",
    severity=Severity.HIGH,
    sees="gradients that are not finite although every operation of this rank gave finite values",
    matters="the cause lies in the data or the state of another rank",
    alike=("a gradient that an extension wrote without telling torch",),
    confirm=("the finding T101 of another rank in the same run folder",),
)


def check(seen_in: str, step: int, rank: int, world_size: int) -> Iterator[Finding]:
    """The finding where nothing of this rank explains the value."""
    yield RULE.finding(
        f"step {step}: {seen_in} is not finite although every operation of rank {rank} gave finite values: it arrived "
        f"from one of the other {world_size - 1} ranks in a collective", Location(step=step, rank=rank),
        "the traced step", bearing=Bearing.SIGN,
        measured={"seen_in": seen_in, "step": step, "world_size": world_size})
