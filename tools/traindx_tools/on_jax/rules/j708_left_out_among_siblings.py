"""Weights stay as they were drawn while others of their kind are trained.

A label tree, a mask or a filter chooses by names, types or predicates what is trained, and misses a part: the part gets
a gradient, stands in the midst of what is trained, was drawn as its trained siblings were, and never changes. `kind`:
"row": of numbered blocks some are trained and later ones are not; "role": one place in every block, whose input comes
from trained weights.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.program.siblings import ERRORS, MOST_TRAINED, LeftOut
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="J708",
    name="jax-left-out-among-siblings",
    title="Weights stay as they were drawn while their siblings are trained",
    severity=Severity.HIGH,
    sees="arrays of the step's state that never change: their first mean and spread against those of trained arrays of "
         "the same shape, and whether trained weights make what comes into them",
    matters="a random part stays in the midst of the model: the rest is trained around it, and the loss ends higher",
    alike=("blocks that were loaded and frozen: they were not drawn as the others were",
           "lower blocks that are frozen, features that are random on purpose: nothing trained comes before them",
           "a head on a frozen body, adapters: most of the model is frozen"),
    confirm=("print the labels or the mask beside the names: jax.tree_util.tree_map_with_path(lambda p, l: "
             "print(jax.tree_util.keystr(p), l), labels)",),
    thresholds={"errors": Threshold(ERRORS, "standard errors between two spreads", "two draws of one distribution"),
                "trained": Threshold(MOST_TRAINED, "of the values of all weights", "else the smaller part is chosen")},
)


def check(seen: LeftOut | None, function: str, calls: int, place: tuple[str, int] | None) -> Iterator[Finding]:
    """At most one finding."""
    if seen is None:
        return
    file, line = place or (None, None)
    yield RULE.finding(
        f"{function}: {_listed(seen.still)} ({seen.values:,} values) did not change in {calls} calls and still are "
        f"what they were drawn as, while {_listed(seen.siblings)} of the same shape, drawn alike, are trained "
        f"({seen.share:.0%} of the values of all weights are)",
        Location(file=file, line=line, module=seen.still[0]), "the running process", bearing=Bearing.CAUSE,
        measured={"kind": seen.kind, "weights": seen.still[:50], "count": len(seen.still), "values": seen.values,
                  "siblings": seen.siblings[:20], "share": round(seen.share, 4), "function": function})


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
