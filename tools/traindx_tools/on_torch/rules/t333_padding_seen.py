"""Padding changes what a model says of the rest of a sequence.

One sequence of a training call is run on a copy with its padding and without. What is padding is known where rows end
in runs of one id that occurs nowhere else, and an embedding's `padding_idx` or a mask says so. The outputs at the real
positions, or of the whole sequence, differ: padding is attended to, averaged over, or read as the last step. `kind`:
"mask" where the model was told by a mask among its arguments, "no-mask" where it was not, "pooled" where the output is
one value a sequence: a mean over all positions is common, and a remark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.dependence import PADDING_MATTERS, SOURCE, Where
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.padding import Padding

RULE = Rule(
    id="T333",
    name="padding-seen",
    title="Padding changes the output of the rest",
    severity=Severity.HIGH,
    sees="the output of a copy of the model for one sequence with and without its padding",
    matters="a sample's result depends on the longest one of its batch",
    alike=("a convolution that reaches over the edge by a few positions",
           "sequences that are all cut to one length: nothing is padding"),
    confirm=("model(ids[:1]) against model(ids[:1, :length])",),
    thresholds={"change": Threshold(PADDING_MATTERS, "standard deviations of the output", "below: edges and rounding")},
)


_SEVERITY = {"pooled": Severity.LOW, "mask": Severity.HIGH, "no-mask": Severity.MEDIUM}


def check(seen: Padding | None, where: Where) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None:
        return
    told = "; a mask of the padding is among its arguments" if seen.mask else ""
    kind = "pooled" if not seen.by_position else "mask" if seen.mask else "no-mask"
    yield RULE.finding(
        f"the output of {where.model} for a sequence of {seen.length} elements changes by up to {seen.largest:.3g} "
        f"standard deviations when its {seen.padded} padded positions (`{seen.argument}` = {seen.token}) are cut "
        f"off{told}", where.at(), SOURCE, bearing=Bearing.CAUSE if kind == "mask" else Bearing.SIGN,
        severity=_SEVERITY[kind],
        measured={"kind": kind, "argument": seen.argument, "token": seen.token, "largest": round(seen.largest, 4),
                  "module": where.model})
