"""Frozen weights stay as they were drawn while others of their kind are trained.

A pattern over names or a predicate chooses which parameters require a gradient, and misses a part: it stands in the
midst of what is trained, was drawn as its trained siblings were, and never changes. `kind`: "row": of numbered blocks
some are trained and later ones are not; "role": one place in every block, whose input comes from trained weights. What
requires a gradient and is in no optimizer is T301.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.membership import listed
from traindx_tools.program.siblings import ERRORS, MOST_TRAINED, LeftOut
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: siblings"
STEPS = 20

RULE = Rule(
    id="T346",
    name="left-out-among-siblings",
    title="Frozen weights stay as they were drawn while their siblings are trained",
    severity=Severity.HIGH,
    sees="mean and spread of frozen weights against the first ones of trained weights of the same shape, and whether "
         "trained weights make what comes into them",
    matters="a random part stays in the midst of the model: the rest is trained around it, and the loss ends higher",
    alike=("blocks that were loaded and frozen: they were not drawn as the others were",
           "lower blocks that are frozen, features that are random on purpose: nothing trained comes before them",
           "a head on a frozen body, adapters: most of the model is frozen"),
    confirm=("print([n for n, p in model.named_parameters() if not p.requires_grad])",),
    thresholds={"errors": Threshold(ERRORS, "standard errors between two spreads", "two draws of one distribution"),
                "trained": Threshold(MOST_TRAINED, "of the values of all weights", "else the smaller part is chosen"),
                "steps": Threshold(STEPS, "optimizer steps", "a schedule may unfreeze later")},
)


def check(seen: LeftOut | None, steps: int, rank: int = 0) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None or steps < STEPS:
        return
    yield RULE.finding(
        f"{listed(list(seen.still), 3)} ({seen.values:,} values) require no gradient and still are what they were "
        f"drawn as after {steps} steps, while {listed(list(seen.siblings), 3)} of the same shape, drawn alike, are "
        f"trained ({seen.share:.0%} of the values of all weights are)",
        Location(module=seen.still[0], step=float(steps), rank=rank), SOURCE, bearing=Bearing.CAUSE,
        measured={"kind": seen.kind, "weights": seen.still[:50], "count": len(seen.still), "values": seen.values,
                  "siblings": seen.siblings[:20], "share": round(seen.share, 4)})
