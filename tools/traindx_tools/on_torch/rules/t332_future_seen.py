"""A model that predicts the next element sees it.

A loss was given, at each position, what the input holds at the next one. One training call is repeated on a copy with
the later inputs exchanged, and outputs at earlier positions change. `kind`: "all" where positions far before the change
see it (no causal mask, a recurrence that runs both ways); "next" where the last position before it alone does (a mask
that is off by one, a convolution without causal padding); "inverted" where later inputs are seen and earlier ones are
not. Models whose target is not their own next input (masked or labelled positions) are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.dependence import SOURCE, Where
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.captured.questions import Future

RULE = Rule(
    id="T332",
    name="future-seen",
    title="A next-element model sees the element that it predicts",
    severity=Severity.CRITICAL,
    sees="outputs at earlier positions of a copy of the model while later inputs change, and the targets of its loss",
    matters="the loss falls far below what can be predicted; generation, which has no future, gives garbage",
    alike=("a prefix that is read both ways and whose targets are ignored", "masked language models"),
    confirm=("print((model(a)[:, :-1] - model(b)[:, :-1]).abs().max())  # a and b differ in their last token",),
    thresholds={"shifted": Threshold(0.95, "of the targets are the next input", "the rest is replaced or masked")},
)


def check(seen: Future | None, where: Where) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None:
        return
    how = {"all": "", "next": " (the last of them alone)",
           "inverted": ", and later outputs do not depend on earlier inputs"}[seen.kind]
    yield RULE.finding(
        f"{where.model} is trained to predict the next element of `{seen.argument}`, and {seen.positions} of "
        f"{seen.before} earlier positions change by up to {seen.largest:.3g} standard deviations when later elements "
        f"are exchanged{how}", where.at(), SOURCE, bearing=Bearing.CAUSE,
        measured={"kind": seen.kind, "argument": seen.argument, "positions": seen.positions,
                  "largest": round(seen.largest, 4), "module": where.model})
