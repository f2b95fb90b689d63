"""Rows of some inputs of a training step do not meet the rows of the others.

The loss of a batch is the same where some of its inputs are put into another order and the others are not: inside the
step some were sorted, gathered or reversed, and the others kept the order of the batch. Each label, weight or mask then
belongs to another sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_jax.measures.row_orders import OTHER, SAME
from traindx_tools.rules import Rule, Threshold

SOURCE = "jax probe: rows-together"

RULE = Rule(
    id="J404",
    name="jax-rows-come-apart",
    title="Rows of a step's inputs do not belong together",
    severity=Severity.CRITICAL,
    sees="the loss of one compiled training step, evaluated with the rows of some inputs in another order",
    matters="targets, weights or masks of other samples are used: what is learned has nothing to do with the inputs",
    alike=("Rows in pairs or groups, mixed neighbours, time along the rows: then no part alone can be put into another "
           "order.", "Two batches of one size that never meet (labelled and unlabelled): all may be put into another "
           "order."),
    confirm=("Look for a sort, an index or a reversal inside the loss that is applied to some of its inputs only.",),
    thresholds={"same": Threshold(SAME, "relative change of the loss", "sums in another order"),
                "other": Threshold(OTHER, "relative change of the loss", "a hundred times more")},
)


@dataclass(frozen=True)
class Step:
    """One function. `together`, `alone`: names of inputs; `moved`: see `measures/row_orders.py`."""

    name: str
    together: tuple[str, ...]
    alone: tuple[str, ...]
    moved: float
    place: tuple[str, int] | None


def check(seen: Step) -> Iterator[Finding]:
    """One finding a function."""
    file, line = seen.place or (None, None)
    ones, others = " and ".join(seen.together), " and ".join(seen.alone)
    yield RULE.finding(
        f"{seen.name} gives the same loss when the rows of {ones} are put into another order and those of {others} are "
        f"not (of {others} alone it changes by {100 * seen.moved:.3g} %): rows of {ones} do not meet the rows of "
        f"{others} that they came with",
        Location(file=file, line=line), SOURCE, bearing=Bearing.CAUSE,
        measured={"function": seen.name, "together": seen.together, "alone": seen.alone,
                  "moved": round(seen.moved, 6)})
