"""What is averaged or summed up does not move: its type cannot hold the increments.

A number with p significant bits stays as it is when something smaller than half a unit in its last place is added. An
average of weights with decay 0.999 takes a thousandth of the difference: in bfloat16 (8 bits) even a difference as
large as the weight itself is rounded away. A sum of losses in bfloat16 stands still from some hundred on, one in
float16 from 2048, a count in float32 at 16,777,216. `kind`: "average" or "sum".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: averages"
SHARES, ELEMENTS, LOOKS = {"average": 0.7, "sum": 0.9}, 16, 2

RULE = Rule(
    id="T349",
    name="increments-rounded-away",
    title="An average or a sum does not move: its increments are rounded away",
    severity=Severity.HIGH,
    sees="elements of averages and sums of the loop before and after their operation, in some steps",
    matters="averaged weights stay at their first values, sums and counts end at some height: what is read from them "
            "is wrong",
    alike=("an average that is near what comes into it: what differs by a fifth and more counts",
           "float32 with the usual decays: everything moves"),
    confirm=("print(average.dtype, (average - before).abs().max()) around the update",
             "keep the average or the sum in float32: it moves"),
    thresholds={"share": Threshold(SHARES["average"], "of the elements that had to change did not (a sum: 0.9)",
                                   "a decay of 0.99 in bfloat16 leaves a third of them"),
                "elements": Threshold(ELEMENTS, "such elements (looks of a single number: 2)", "no slip of one")},
)


@dataclass
class Stuck:
    """One line, over all looks. `must`: elements that had to change; `still`: those of them that did not. An average
    has far to go at first and moves; it stops on the way: of one the last look counts."""

    kind: str
    dtype: str
    weight: float
    file: str | None = None
    line: int | None = None
    must: int = 0
    still: int = 0
    looks: int = 0
    step: int = 0

    def take(self, must: int, still: int, step: int) -> None:
        """An operation of the look that began at this step."""
        if self.kind == "average" and step != self.step:
            self.must = self.still = 0
        self.must, self.still, self.looks, self.step = self.must + must, self.still + still, self.looks + 1, step


def check(seen: Sequence[Stuck], rank: int = 0) -> Iterator[Finding]:
    """At most one finding for each line."""
    for s in seen:
        enough = s.must >= ELEMENTS or (s.kind == "sum" and s.looks >= LOOKS and s.must >= LOOKS)
        if not enough or s.still < SHARES[s.kind] * s.must:
            continue
        what = (f"an average in {s.dtype} that takes {s.weight:.3g} of what comes in does not move: {s.still:,} of "
                f"{s.must:,} elements that differ from it by a fifth to twice its size are the same after the update"
                if s.kind == "average" else
                f"a sum in {s.dtype} does not move: {s.still:,} of {s.must:,} additions of something other than 0 "
                "leave it as it is")
        yield RULE.finding(
            f"{what} (half a unit in the last place is more than what is added)",
            Location(file=s.file, line=s.line, step=float(s.step), rank=rank), SOURCE, bearing=Bearing.CAUSE,
            measured={"kind": s.kind, "dtype": s.dtype, "weight": s.weight, "must": s.must, "still": s.still})
