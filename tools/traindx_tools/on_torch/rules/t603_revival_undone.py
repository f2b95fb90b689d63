"""Dead codes are revived and the next update puts them back.

Reviving a dead code overwrites its vector with an encoder output. Where a moving average keeps its own sums (cluster
size and summed vectors), the next update computes the vector from those and the revival is gone; the code stays dead
for ever, or is revived again in every step. The sums must be set together with the vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.codes.motion import Motion

LEAST, SHARE = 4, 0.5

RULE = Rule(
    id="T603",
    name="revival-undone",
    title="Revived codes do not stay",
    severity=Severity.HIGH,
    sees="codes that move by half the codebook's spread in one step, and where they are in the steps after",
    matters="the codebook stays collapsed however often codes are revived",
    alike=("a code that is chosen by an outlier once: it comes back slowly, not in one step",
           "the first steps of a codebook that is initialised from data: each code jumps once"),
    confirm=("print the code's vector, cluster size and summed vector before and after the next update",),
    thresholds={
        "codes": Threshold(LEAST, "codes", "single outliers are left alone"),
        "undone": Threshold(SHARE, "of all jumps", "a revival that lasts jumps once and stays"),
    },
)


def check(path: str, motion: Motion, source: str, rank: int) -> Iterator[Finding]:
    """A finding where jumps are undone one step later, or the same codes jump again and again."""
    undone = motion.back >= LEAST and motion.back >= SHARE * motion.jumps
    if not undone and motion.restless < LEAST:
        return
    what = (f"{motion.back} of {motion.jumps} times that a code of {path} was moved far in one step it was back at its "
            "old place in the next" if undone else
            f"{motion.restless} codes of {path} are moved far in a quarter of the steps and more: they are revived "
            "again and again")
    yield RULE.finding(what, Location(module=path, step=0, end_step=motion.steps, rank=rank), source,
                       bearing=Bearing.CAUSE,
                       measured={"jumped": motion.jumps, "back": motion.back, "restless": motion.restless})
